//! The common and combined formats of web servers: `host ident user [time] "request" status size "referer"
//! "agent"`, the last two only in the combined. The time may have a fraction of a second, or be one of ISO
//! 8601.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_size, is_status, method_and_target};
use crate::recording::log_time::{self, Stamp};
use crate::recording::problem::Defect;

/// The longest text in brackets that may be a time, bytes: a common one with nanoseconds has 36.
const TIME_BYTES: usize = 40;

/// Splits one line. The parts before the time (host, user, a virtual host in front) and after the size are
/// not looked at. O(length of the line).
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Flaw<'_>> {
    let (time, rest) = split_time(line)?;
    let (request, rest) = split_request(rest)?;
    let (method, target) = method_and_target(request)?;
    let size = rest.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    Ok(Entry {
        time,
        method: method.into(),
        target: EntryTarget::escaped(target),
        bytes: checked_size(size)?,
    })
}

/// The time and what follows it. A bracket that holds no time is passed over: a host may be `[2001:db8::1]`.
fn split_time(line: &[u8]) -> Result<(Stamp, &[u8]), Flaw<'_>> {
    // Brackets that begin the line hold addresses, which no message may show.
    let mut closest = None;
    for at in (0..line.len()).filter(|at| line[*at] == b'[') {
        let inside = &line[at + 1..];
        let end = inside.iter().take(TIME_BYTES + 1).position(|byte| *byte == b']');
        if let Some(end) = end
            && let Some(time) = log_time::common(&inside[..end]).or_else(|| log_time::iso(&inside[..end]))
        {
            return Ok((time, &inside[end + 1..]));
        }
        let is_like_a_time = inside.get(2) == Some(&b'/') || inside.get(4) == Some(&b'-');
        if closest.is_none() && at > 0 && is_like_a_time {
            let end = at + 1 + end.map_or(TIME_BYTES, |end| end + 1);
            closest = Some(&line[at..line.len().min(end)]);
        }
    }
    Err(closest.map_or(Defect::NoTime.unshown(), |text| Defect::BadTime.at(text)))
}

/// The request between its quotes, and what follows the status.
///
/// Today's servers escape quotes within; old ones did not. So the request ends at the first quote that is not
/// escaped and has a status behind it.
fn split_request(rest: &[u8]) -> Result<(&[u8], &[u8]), Flaw<'_>> {
    let Some(body) = rest.trim_ascii_start().strip_prefix(b"\"") else {
        return Err(Defect::NoRequest.unshown());
    };
    let mut first_end = None;
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            b'\\' => at += 1,
            b'"' => {
                if let Some(after) = after_status(&body[at + 1..]) {
                    return Ok((&body[..at], after));
                }
                first_end.get_or_insert(at);
            }
            _ => {}
        }
        at += 1;
    }
    Err(first_end.map_or(Defect::OpenRequest.at(body), |end| {
        let rest = &body[end + 1..];
        // The referer is in quotes and no part of the fault.
        Defect::BadStatus.at(rest.split(|byte| *byte == b'"').next().unwrap_or_default().trim_ascii())
    }))
}

fn after_status(rest: &[u8]) -> Option<&[u8]> {
    let (status, after) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
    (is_status(status) && after.first().is_none_or(|byte| *byte == b' ')).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, method: &str, target: &str, bytes: Option<u64>) {
        let entry = parse(line.as_bytes()).unwrap_or_else(|flaw| panic!("{line}: {flaw:?}"));
        assert_eq!(entry.time, Stamp::whole(1_431_857_103), "{line}");
        assert_eq!(&*entry.method, method.as_bytes(), "{line}");
        assert_eq!(entry.target, EntryTarget::escaped(target.as_bytes()), "{line}");
        assert_eq!(entry.bytes, bytes, "{line}");
    }

    #[test]
    fn lines_as_servers_write_them() {
        const TIME: &str = "[17/May/2015:10:05:03 +0000]";
        let common = format!("192.0.2.1 - - {TIME} \"GET /a?b=c HTTP/1.1\" 200 17");
        check(&common, "GET", "/a?b=c", Some(17));
        check(&format!("{common} \"http://r/\" \"Agent (x; y)\""), "GET", "/a?b=c", Some(17));
        check(&format!("{common} \"-\" \"cut off"), "GET", "/a?b=c", Some(17));
        check(&format!("h - - {TIME} \"HEAD / HTTP/1.0\" 304 -"), "HEAD", "/", None);
        check(&format!("h - frank z {TIME} \"GET /\" 200 1"), "GET", "/", Some(1));
        check(&format!("2001:db8::1 - - {TIME} \"GET /six HTTP/2.0\" 200 1"), "GET", "/six", Some(1));
        check(&format!("[2001:db8::1] - - {TIME} \"GET /six HTTP/2.0\" 200 1"), "GET", "/six", Some(1));
        check(&format!("shop:443 192.0.2.1 - - {TIME} \"GET /v HTTP/1.1\" 200 1"), "GET", "/v", Some(1));
        check("h - - [17/May/2015:06:05:03 -0400] \"GET /z HTTP/1.1\" 200 1", "GET", "/z", Some(1));
        check("h - - [17/May/2015:15:50:03 +0545] \"GET /z HTTP/1.1\" 200 1", "GET", "/z", Some(1));
    }

    #[test]
    fn times_with_a_fraction_and_of_iso_8601() {
        let check = |time: &str, nanosecond| {
            let line = format!("2001:db8::1 - - [{time}] \"GET /a HTTP/1.1\" 200 17");
            let entry = parse(line.as_bytes()).unwrap_or_else(|flaw| panic!("{line}: {flaw:?}"));
            assert_eq!(entry.time, Stamp { second: 1_431_857_103, nanosecond }, "{line}");
        };
        check("17/May/2015:10:05:03.250 +0000", Some(250_000_000));
        check("17/May/2015:12:05:03.250000001 +0200", Some(250_000_001));
        check("2015-05-17T10:05:03+00:00", None);
        check("2015-05-17T10:05:03.25Z", Some(250_000_000));
    }

    #[test]
    fn odd_requests() {
        let check = |request: &str, method, target| {
            check(
                &format!("h - - [17/May/2015:10:05:03 +0000] \"{request}\" 200 5 \"-\" \"-\""),
                method,
                target,
                Some(5),
            );
        };
        check(r#"GET /a\"b HTTP/1.1"#, "GET", r#"/a\"b"#);
        check(r#"GET /a\" 404 9 HTTP/1.1"#, "GET", r#"/a\" 404 9"#);
        check(r#"GET /old"unescaped HTTP/1.0"#, "GET", r#"/old"unescaped"#);
        check(r"GET /back\\slash HTTP/1.0", "GET", r"/back\\slash");
        check("GET /with space HTTP/1.0", "GET", "/with space");
        check("GET  /two  HTTP/1.0", "GET", "/two");
        check("GET /no version", "GET", "/no version");
        check("OPTIONS * HTTP/1.1", "OPTIONS", "*");
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
        };
        let after_time = |rest: &str, defect, part| {
            check(&format!("h - - [17/May/2015:10:05:03 +0000]{rest}"), defect, part)
        };
        check("just words", Defect::NoTime, "");
        check("[2001:db8::1] - - x", Defect::NoTime, "");
        check(
            "h - - [17/Mai/2015:10:05:03 +0000] \"GET /\" 200 1",
            Defect::BadTime,
            "[17/Mai/2015:10:05:03 +0000]",
        );
        check("h - - [17/May/2015", Defect::BadTime, "[17/May/2015");
        after_time("", Defect::NoRequest, "");
        after_time(" 200 5", Defect::NoRequest, "");
        after_time(" \"-\" 408 0", Defect::NoRequest, "-");
        after_time(" \"\" 400 0", Defect::NoRequest, "");
        after_time(" \"GET / HTTP/1.1", Defect::OpenRequest, "GET / HTTP/1.1");
        after_time(r#" "GET / HTTP/1.1\" 200 5"#, Defect::OpenRequest, r#"GET / HTTP/1.1\" 200 5"#);
        after_time(" \"GET / HTTP/1.1\" OK 5 \"r\" \"a\"", Defect::BadStatus, "OK 5");
        after_time(" \"GET / HTTP/1.1\" 2000 5", Defect::BadStatus, "2000 5");
        after_time(" \"GET / HTTP/1.1\" 200 five", Defect::BadSize, "five");
        after_time(" \"GET / HTTP/1.1\" 200", Defect::BadSize, "");
        after_time(r#" "\x16\x03\x01" 400 5"#, Defect::BadMethod, r"\x16\x03\x01");
        after_time(" \"GET HTTP/1.1\" 400 5", Defect::NoTarget, "GET HTTP/1.1");
        after_time(" \"quit\" 400 5", Defect::NoTarget, "quit");
    }
}
