//! The NASA log as tab-separated values: `host logname time method url response bytes referer useragent`, the
//! time in seconds since 1970.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_method, checked_size, is_status};
use crate::recording::log_time::Stamp;
use crate::recording::problem::Defect;

/// Returns whether this is the line of column names, which may stand first.
pub(super) fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"host\tlogname\ttime\t")
}

/// Splits one line; the columns behind the size are not looked at. O(length of the line).
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Flaw<'_>> {
    let mut fields = line.split(|byte| *byte == b'\t').skip(2);
    // Which field is missing is unknown, so nothing is shown: it might be the host.
    let mut next = || fields.next().ok_or(Defect::FewFields.unshown());
    let (time, method, url, status, size) = (next()?, next()?, next()?, next()?, next()?);
    let second = checked_size(time).ok().flatten().and_then(|second| i64::try_from(second).ok());
    let second = second.ok_or(Defect::BadSecond.at(time))?;
    let method = checked_method(method)?;
    if url.is_empty() {
        return Err(Defect::NoTarget.unshown());
    }
    if !is_status(status) {
        return Err(Defect::BadStatus.at(status));
    }
    let time = Stamp::whole(second);
    Ok(Entry { time, method, target: EntryTarget::plain(url), bytes: checked_size(size)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log() {
        let entry = parse(b"h.example\t-\t807256800\tGET\t/images/logo.gif\t200\t1713\t\t").unwrap();
        let (time, target) = (Stamp::whole(807_256_800), EntryTarget::plain(b"/images/logo.gif"));
        assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes: Some(1_713) });
        assert!(is_header(b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes\treferer\tuseragent"));
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("h\t-\t807256800\tGET\t/\t200", Defect::FewFields, "");
        check("h - 807256800 GET / 200 5", Defect::FewFields, "");
        check("h\t-\tnoon\tGET\t/\t200\t5", Defect::BadSecond, "noon");
        check("h\t-\t-\tGET\t/\t200\t5", Defect::BadSecond, "-");
        check("h\t-\t99999999999999999999\tGET\t/\t200\t5", Defect::BadSecond, "99999999999999999999");
        check("h\t-\t1\tG T\t/\t200\t5", Defect::BadMethod, "G T");
        check("h\t-\t1\tGET\t\t200\t5", Defect::NoTarget, "");
        check("h\t-\t1\tGET\t/\tOK\t5", Defect::BadStatus, "OK");
        check("h\t-\t1\tGET\t/\t200\tfive", Defect::BadSize, "five");
    }
}
