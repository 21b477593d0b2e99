//! Known log formats: their names, how they are recognised, and what they cannot say.

use crate::recording::combined;
use crate::recording::json_lines::{self, Layout};
use crate::recording::{alb, envoy, haproxy, json, nasa_tsv, w3c, world_cup};
use hifijson::token::Lex as _;
use hifijson::{Error, SliceLexer};
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
    /// Access logs of AWS Application Load Balancers.
    Alb,
    /// Standard logs of AWS CloudFront, a kind of the W3C's extended format.
    CloudFront,
    /// The W3C's extended format, as IIS writes it.
    W3c,
    /// HAProxy's `option httplog`.
    Haproxy,
    /// Envoy's default format, and Istio's.
    Envoy,
    /// Envoy's fields as JSON, under the names of its documentation.
    EnvoyJson,
    /// Caddy's JSON.
    Caddy,
    /// Traefik's JSON.
    Traefik,
    /// JSON of nginx's variables, under their names or others that are usual.
    NginxJson,
    /// An HTTP archive: one person's browser.
    Har,
}

/// All that is known of one format.
struct Known {
    format: Format,
    names: &'static [&'static str],
    /// The program that writes it, for lists.
    writer: &'static str,
    /// Test whether a file that begins so is of this format.
    fits: fn(&[u8]) -> bool,
    order: Order,
    /// Facts that are missing in it or uncertain, besides those that every log lacks; empty if none.
    lacks: &'static str,
}

/// In which order a log has its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In that of their times, but for small steps back, which are played at the latest time above them.
    AsWritten,
    /// In that in which the answers ended, though it says when the requests came: it is put in order.
    ByEnd,
}

/// The table by which a format is recognised: the first that fits. A format stands above those that its lines
/// fit as well.
static TABLE: [Known; 13] = [
    Known {
        format: Format::Har,
        names: &["har"],
        writer: "a browser's HTTP archive",
        fits: is_archive,
        order: Order::ByEnd,
        lacks: "it is one person's session; requests to other hosts and answers from the browser's cache are left out",
    },
    Known {
        format: Format::CloudFront,
        names: &["cloudfront"],
        writer: "AWS CloudFront",
        fits: |first| w3c::looks_like(lines(first), true),
        order: Order::ByEnd,
        lacks: "its times are whole seconds, of the answer's end less the time taken",
    },
    Known {
        format: Format::W3c,
        names: &["w3c", "iis"],
        writer: "W3C extended, IIS",
        fits: |first| w3c::looks_like(lines(first), false),
        order: Order::ByEnd,
        lacks: "its times are whole seconds, of the answer's end less the time taken; IIS writes paths decoded, with + for a space",
    },
    Known {
        format: Format::Caddy,
        names: &["caddy"],
        writer: "Caddy's JSON",
        fits: |first| is_json(first, &json_lines::CADDY),
        order: Order::ByEnd,
        lacks: "",
    },
    Known {
        format: Format::Traefik,
        names: &["traefik"],
        writer: "Traefik's JSON",
        fits: |first| is_json(first, &json_lines::TRAEFIK),
        order: Order::ByEnd,
        lacks: "",
    },
    Known {
        format: Format::EnvoyJson,
        names: &["envoy-json"],
        writer: "Envoy's and Istio's JSON",
        fits: |first| is_json(first, &json_lines::ENVOY),
        order: Order::ByEnd,
        lacks: "",
    },
    Known {
        format: Format::NginxJson,
        names: &["nginx-json"],
        writer: "JSON of nginx's variables",
        fits: |first| is_json(first, &json_lines::NGINX),
        order: Order::ByEnd,
        lacks: "without request_time its times are those of the answer's end",
    },
    Known {
        format: Format::Haproxy,
        names: &["haproxy"],
        writer: "HAProxy's httplog",
        fits: |first| any_line(first, |line| haproxy::parse(line).is_ok()),
        order: Order::ByEnd,
        lacks: "its times have no zone and count as UTC",
    },
    Known {
        format: Format::Envoy,
        names: &["envoy"],
        writer: "Envoy's and Istio's default",
        fits: |first| any_line(first, |line| envoy::parse(line).is_ok()),
        order: Order::ByEnd,
        lacks: "",
    },
    Known {
        format: Format::Alb,
        names: &["alb"],
        writer: "AWS Application Load Balancer",
        fits: |first| any_line(first, |line| alb::parse(line).is_ok()),
        order: Order::ByEnd,
        lacks: "",
    },
    Known {
        format: Format::Combined,
        names: &["combined", "common"],
        writer: "Apache, nginx and others",
        fits: |first| any_line(first, |line| combined::parse(line).is_ok()),
        order: Order::AsWritten,
        lacks: "nginx and some others write the time of the answer's end",
    },
    Known {
        format: Format::NasaTsv,
        names: &["nasa-tsv"],
        writer: "the NASA log of 1995, tab-separated",
        fits: |first| any_line(first, |line| nasa_tsv::is_header(line) || nasa_tsv::parse(line).is_ok()),
        order: Order::AsWritten,
        lacks: "",
    },
    Known {
        format: Format::WorldCupBinary,
        names: &["world-cup"],
        writer: "the World Cup logs of 1998, 20-byte records",
        fits: world_cup::looks_like,
        order: Order::AsWritten,
        lacks: "it has numbers for paths",
    },
];

/// A name that belongs to no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a log format: expected {names}, or a pattern with $variables", names = names())]
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
        TABLE.iter().find(|known| (known.fits)(first)).map(|known| known.format)
    }

    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|known| known.format)
    }

    /// The program that writes logs of this format.
    #[must_use]
    pub fn writer(self) -> &'static str {
        self.known().writer
    }

    /// Facts that logs of this format lack, besides those that every log lacks (how long people wait, where
    /// they come from, which fields and bodies they send); empty if none.
    #[must_use]
    pub fn lacks(self) -> &'static str {
        self.known().lacks
    }

    pub(super) fn order(self) -> Order {
        self.known().order
    }

    fn known(self) -> &'static Known {
        // Every format has its row: a test sees to it.
        TABLE.iter().find(|known| known.format == self).unwrap_or(&TABLE[0])
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = TABLE.iter().find(|known| known.names.contains(&name));
        found.map(|known| known.format).ok_or_else(|| UnknownFormatName(name.chars().take(40).collect()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.known().names[0])
    }
}

/// All names, in the order of the table, with commas between.
pub(super) fn names() -> String {
    TABLE.iter().flat_map(|known| known.names).copied().collect::<Vec<_>>().join(", ")
}

/// The first lines, without their ends.
pub(super) fn lines(first: &[u8]) -> impl Iterator<Item = &[u8]> {
    first.split(|byte| *byte == b'\n').take(LINES_LOOKED_AT).map(<[u8]>::trim_ascii_end)
}

fn any_line(first: &[u8], fits: impl Fn(&[u8]) -> bool) -> bool {
    lines(first).any(fits)
}

/// Returns whether a file that begins so is an HTTP archive: an object whose first key is `log`, which holds
/// an object.
fn is_archive(first: &[u8]) -> bool {
    let mut is_archive = false;
    let mut lexer = SliceLexer::new(first);
    // The beginning is all that there is, so that the document has no end.
    let _ = json::object(&mut lexer, |key, lexer| {
        is_archive = key == b"log" && lexer.ws_peek() == Some(b'{');
        Err(Error::Depth)
    });
    is_archive
}

fn is_json(first: &[u8], layout: &Layout) -> bool {
    any_line(first, |line| json_lines::parse(line, layout).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_and_each_format_has_one_row() {
        for format in Format::all() {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(Format::all().filter(|other| *other == format).count(), 1);
        }
        assert_eq!("common".parse(), Ok(Format::Combined));
        assert_eq!("iis".parse(), Ok(Format::W3c));
        let message = "IIS".parse::<Format>().unwrap_err().to_string();
        let wanted = "\"IIS\" is not a log format: expected har, cloudfront, w3c, iis, caddy, traefik, ";
        assert!(message.starts_with(wanted), "{message}");
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
