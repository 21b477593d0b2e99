//! Known log formats, their names, and how they are recognised.

use crate::recording::{combined, nasa_tsv, world_cup};
use std::fmt;
use std::str::FromStr;

/// Lines that are tried before a beginning counts as of no format.
const LINES_LOOKED_AT: usize = 32;

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The common and the combined format of Apache, nginx and others, a virtual host in front or not.
    Combined,
    /// Tab-separated values in the columns of the NASA log of 1995, times in seconds since 1970.
    NasaTsv,
    /// The 20-byte records of the 1998 World Cup logs (Internet Traffic Archive).
    WorldCupBinary,
}

/// A name that belongs to no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a log format: expected common, combined, nasa-tsv or world-cup")]
pub struct UnknownFormatName(pub String);

impl Format {
    /// The format of a log that begins so; some kilobytes are enough. `None` if nothing in it fits one.
    ///
    /// ```
    /// use flashweir_workload::recording::Format;
    /// let first = b"192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 17\n";
    /// assert_eq!(Format::detect(first), Some(Format::Combined));
    /// ```
    #[must_use]
    pub fn detect(first: &[u8]) -> Option<Self> {
        let lines = || first.split(|byte| *byte == b'\n').take(LINES_LOOKED_AT);
        if lines().any(|line| combined::parse(line.trim_ascii_end()).is_ok()) {
            Some(Self::Combined)
        } else if lines().any(|line| nasa_tsv::is_header(line) || nasa_tsv::parse(line).is_ok()) {
            Some(Self::NasaTsv)
        } else {
            world_cup::looks_like(first).then_some(Self::WorldCupBinary)
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "common" | "combined" => Ok(Self::Combined),
            "nasa-tsv" => Ok(Self::NasaTsv),
            "world-cup" => Ok(Self::WorldCupBinary),
            other => Err(UnknownFormatName(other.chars().take(40).collect())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Combined => "combined",
            Self::NasaTsv => "nasa-tsv",
            Self::WorldCupBinary => "world-cup",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for format in [Format::Combined, Format::NasaTsv, Format::WorldCupBinary] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("common".parse(), Ok(Format::Combined));
        let message = "IIS".parse::<Format>().unwrap_err().to_string();
        assert_eq!(message, "\"IIS\" is not a log format: expected common, combined, nasa-tsv or world-cup");
    }

    #[test]
    fn formats_are_told_apart() {
        let check = |first: &[u8], wanted| assert_eq!(Format::detect(first), wanted, "{first:?}");
        let common = "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 17\r\n";
        check(common.as_bytes(), Some(Format::Combined));
        check(format!("garbage\n\n{common}").as_bytes(), Some(Format::Combined));
        check(b"host\tlogname\ttime\tmethod\n", Some(Format::NasaTsv));
        check(b"h\t-\t807256800\tGET\t/\t200\t5\t\t\n", Some(Format::NasaTsv));
        let record = [0x35, 0x7e, 0x9d, 0x80, 0, 0, 0, 7, 0, 0, 1, 2, 0, 0, 0x10, 0, 0, 0x82, 1, 0x21];
        check(&record.repeat(3), Some(Format::WorldCupBinary));
        for nothing in [&b""[..], b"\n\n", b"time,count\n1,2\n", b"{\"json\": true}", &[0xff; 4_000]] {
            check(nothing, None);
        }
    }
}
