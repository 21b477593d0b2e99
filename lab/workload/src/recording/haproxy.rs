//! HAProxy's `option httplog`, with or without the prefix of syslog:
//! `client [time] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes … "request"`.

use crate::recording::entry::{Entry, EntryTarget, Escapes, Flaw, is_status, method_and_target};
use crate::recording::fields::next_field;
use crate::recording::log_time::{self, Stamp};
use crate::recording::problem::Defect;

const NAME: &str = "HAProxy's httplog";
const NO_TIME: Defect = Defect::Expected { format: NAME, what: "a time such as [17/May/2015:10:05:03.250]" };
const NO_TIMERS: Defect = Defect::Expected { format: NAME, what: "five timers such as 0/0/1/12/13" };
/// Bytes of a time with milliseconds.
const TIME_BYTES: usize = 24;

/// Splits one line. O(length of the line).
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Flaw<'_>> {
    let (time, mut rest) = split_time(line).ok_or(NO_TIME.unshown())?;
    let mut next = || next_field(&mut rest).unwrap_or_default();
    let (_frontend, _server, timers) = (next(), next(), next());
    if !are_timers(timers) {
        return Err(NO_TIMERS.at(timers));
    }
    let (status, bytes) = (next(), next());
    if !is_status(status) && status != b"-1" {
        return Err(Defect::BadStatus.at(status));
    }
    let bytes = number_after_plus(bytes).ok_or(Defect::BadSize.at(bytes))?;
    // Quotes in what was captured and in the request are written as `#22`.
    let quoted = rest.iter().position(|byte| *byte == b'"').ok_or(Defect::NoRequest.unshown())?;
    let request = &rest[quoted + 1..];
    let end = request.iter().position(|byte| *byte == b'"').ok_or(Defect::OpenRequest.at(request))?;
    let request = &request[..end];
    if request == b"<BADREQ>" {
        return Err(Defect::NoRequest.at(request));
    }
    let (method, target) = method_and_target(request)?;
    let target = EntryTarget::Text(target.into(), Escapes::Hash);
    Ok(Entry { time, method: method.into(), target, bytes: Some(bytes) })
}

/// The time and what follows it and a space. Other brackets, such as that of the process's number, are passed
/// over.
fn split_time(line: &[u8]) -> Option<(Stamp, &[u8])> {
    (0..line.len()).filter(|at| line[*at] == b'[').find_map(|at| {
        let (text, rest) = line[at + 1..].split_at_checked(TIME_BYTES)?;
        Some((log_time::common_without_zone(text)?, rest.strip_prefix(b"] ")?))
    })
}

/// Five numbers, `-1` for what did not take place; the last may have a plus, if the line was written too
/// early.
fn are_timers(text: &[u8]) -> bool {
    let timers = text.split(|byte| *byte == b'/');
    timers.clone().count() == 5
        && timers.into_iter().all(|timer| timer == b"-1" || number_after_plus(timer).is_some())
}

fn number_after_plus(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let digits = str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r##"May 17 10:05:03 lb haproxy[14389]: 2001:db8::1:33317 [17/May/2015:10:05:03.250] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {shop.example} {} "GET /a#22b?q=c%20d HTTP/1.1""##;

    #[test]
    fn a_line_with_what_syslog_puts_before_it() {
        let entry = parse(LINE.as_bytes()).unwrap();
        let time = Stamp { second: 1_431_857_103, nanosecond: Some(250_000_000) };
        let target = EntryTarget::Text(b"/a#22b?q=c%20d".into(), Escapes::Hash);
        assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes: Some(2_750) });
        let early = LINE.replace("/109 200 2750", "/+109 200 +2750").replace("{shop.example} {} ", "");
        assert_eq!(parse(early.as_bytes()).unwrap().bytes, Some(2_750));
        let given_up = LINE.replace("10/0/30/69/109 200", "10/-1/-1/-1/109 -1");
        assert!(parse(given_up.as_bytes()).is_ok());
        let with_tls = format!("{LINE} 0/0000000000000000/0/0/0 shop.example/TLSv1.3/TLS_AES_128");
        assert!(parse(with_tls.as_bytes()).is_ok());
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("haproxy[14389]: Proxy http-in started.", NO_TIME, "");
        check(&LINE.replace(".250]", ".250 +0000]"), NO_TIME, "");
        check(&LINE.replace("10/0/30/69/109", "10/0/30"), NO_TIMERS, "10/0/30");
        check(&LINE.replace(" 200 ", " OK "), Defect::BadStatus, "OK");
        check(&LINE.replace(" 2750 ", " many "), Defect::BadSize, "many");
        check(&LINE.replace("GET /a#22b?q=c%20d HTTP/1.1", "<BADREQ>"), Defect::NoRequest, "<BADREQ>");
        check(LINE.trim_end_matches('"'), Defect::OpenRequest, "GET /a#22b?q=c%20d HTTP/1.1");
        check(&LINE.replace('"', ""), Defect::NoRequest, "");
    }
}
