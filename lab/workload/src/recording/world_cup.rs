//! The binary records of the 1998 World Cup logs (Internet Traffic Archive, "WorldCup98"): 20 bytes each,
//! numbers big-endian: time (seconds since 1970), client, object, size (32 bits each); method, status, type
//! of file, server (8 bits each).

use crate::recording::entry::{Entry, EntryTarget, Flaw};
use crate::recording::log_time::Stamp;
use crate::recording::problem::Defect;
use std::ops::RangeInclusive;

/// Bytes of one record.
pub(super) const RECORD_BYTES: usize = 20;

/// Methods in the order of their codes, as the archive's own tools number them.
const METHODS: [&[u8]; 8] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"TRACE", b"OPTIONS", b"CONNECT"];
/// The code of any other method.
const OTHER_METHOD: u8 = 8;
/// Value of the size when the log had none.
const NO_SIZE: u32 = u32::MAX;
/// First and last second of 1998.
const YEAR_1998: RangeInclusive<u32> = 883_612_800..=915_148_799;
/// Records that must look right before a file is taken for such a log.
const RECORDS_LOOKED_AT: usize = 16;

/// Splits one record. Not looked at: the client, and status, type and server, which no replay needs.
pub(super) fn parse(record: &[u8; RECORD_BYTES]) -> Result<Entry<'_>, Flaw<'_>> {
    let number = |at: usize| u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let method =
        METHODS.get(usize::from(record[16])).ok_or(Defect::UnknownMethodCode(record[16]).unshown())?;
    Ok(Entry {
        time: Stamp::whole(i64::from(number(0))),
        method: (*method).into(),
        target: EntryTarget::Object(number(8)),
        bytes: Some(number(12)).filter(|size| *size != NO_SIZE).map(u64::from),
    })
}

/// Returns whether a file that begins so is such a log. Text never is: no letter is a method's code.
pub(super) fn looks_like(first: &[u8]) -> bool {
    let (records, _) = first.as_chunks::<RECORD_BYTES>();
    let is_likely = |record: &[u8; RECORD_BYTES]| {
        let second = u32::from_be_bytes([record[0], record[1], record[2], record[3]]);
        YEAR_1998.contains(&second) && record[16] <= OTHER_METHOD
    };
    !records.is_empty() && records.iter().take(RECORDS_LOOKED_AT).all(is_likely)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: [u8; RECORD_BYTES] =
        [0x35, 0x7e, 0x9d, 0x80, 0, 0, 0, 7, 0, 0, 1, 2, 0, 0, 0x10, 0, 0, 0x82, 1, 0x21];

    #[test]
    fn a_record() {
        let entry = parse(&RECORD).unwrap();
        let (time, target) = (Stamp::whole(897_490_304), EntryTarget::Object(258));
        assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes: Some(4_096) });
        assert!(looks_like(&RECORD));
    }

    #[test]
    fn no_size_and_no_method() {
        let mut record = RECORD;
        record[12..16].fill(0xff);
        assert_eq!(parse(&record).unwrap().bytes, None);
        record[16] = 8;
        assert_eq!(parse(&record), Err(Defect::UnknownMethodCode(8).unshown()));
    }

    #[test]
    fn other_files_are_not_taken_for_it() {
        assert!(!looks_like(b""));
        assert!(!looks_like(&RECORD[..19]));
        assert!(!looks_like(b"54.23.1.9 - - [17/May/2015:10:05:03 +0000] \"GET /"));
        assert!(!looks_like(&[0; 200]));
    }
}
