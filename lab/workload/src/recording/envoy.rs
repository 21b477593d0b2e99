//! Envoy's default format, and that of Istio, which has three fields more:
//! `[time] "request" status flags received sent milliseconds …`.

use crate::recording::entry::{Entry, EntryTarget, Flaw, method_and_target};
use crate::recording::fields::next_field;
use crate::recording::log_time;
use crate::recording::problem::Defect;

const NAME: &str = "Envoy's default format";
const NO_TIME: Defect =
    Defect::Expected { format: NAME, what: "a time such as [2015-05-17T10:05:03.250Z] first" };
const NO_NUMBERS: Defect = Defect::Expected {
    format: NAME,
    what: "bytes received, bytes sent and milliseconds after the status and flags",
};

/// Splits one line. O(length of the line).
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Flaw<'_>> {
    let (time, rest) = line.strip_prefix(b"[").and_then(split_time).ok_or(NO_TIME.unshown())?;
    let mut rest = rest.strip_prefix(b" ").unwrap_or(rest);
    if !rest.starts_with(b"\"") {
        return Err(Defect::NoRequest.unshown());
    }
    let mut next = || next_field(&mut rest).unwrap_or_default();
    let (request, status, _flags) = (next(), next(), next());
    // Zero where no answer began.
    if number(status).is_none_or(|status| status > 999) {
        return Err(Defect::BadStatus.at(status));
    }
    let first = next();
    // Istio's details, which are no number, ways of ending, and reason.
    let received = if number(first).is_some() {
        first
    } else {
        std::iter::from_fn(|| Some(next())).nth(2).unwrap_or_default()
    };
    let (sent, milliseconds) = (next(), next());
    // By these three numbers this format differs from the combined one.
    let (Some(_), Some(bytes), Some(_)) = (number(received), number(sent), number(milliseconds)) else {
        return Err(NO_NUMBERS.unshown());
    };
    let (method, target) = method_and_target(request)?;
    Ok(Entry { time, method: method.into(), target: EntryTarget::plain(target), bytes: Some(bytes) })
}

fn split_time(inside: &[u8]) -> Option<(log_time::Stamp, &[u8])> {
    let end = inside.iter().position(|byte| *byte == b']')?;
    Some((log_time::iso(&inside[..end])?, &inside[end + 1..]))
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::log_time::Stamp;

    const LINE: &str = r#"[2015-05-17T10:05:03.250Z] "GET /a?q=b%20c HTTP/2" 200 - 0 135 226 100 "2001:db8::1" "agent \"x\"" "cc21d9b0" "shop.example" "10.0.2.1:80""#;
    const ISTIO: &str = r#"[2015-05-17T10:05:03.250Z] "GET /a?q=b%20c HTTP/1.1" 200 - via_upstream - "-" 0 135 4 4 "-" "curl" "84961386" "shop.example" "10.44.1.27:80""#;

    #[test]
    fn lines_of_envoy_and_istio() {
        for line in [LINE, ISTIO] {
            let entry = parse(line.as_bytes()).unwrap();
            let time = Stamp { second: 1_431_857_103, nanosecond: Some(250_000_000) };
            let target = EntryTarget::plain(&b"/a?q=b%20c"[..]);
            assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes: Some(135) }, "{line}");
        }
        assert!(parse(LINE.replace("200 - 0 135", "0 DC 0 0").as_bytes()).is_ok());
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("2001:db8::1 - - [x]", NO_TIME, "");
        check("[17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 - 0 1 2", NO_TIME, "");
        check("[2015-05-17T10:05:03Z] GET /", Defect::NoRequest, "");
        check(&LINE.replace("\" 200 ", "\" OK "), Defect::BadStatus, "OK");
        check(&LINE.replace("200 - 0 135", "200 17 \"-\" \"agent\""), NO_NUMBERS, "");
        check(&LINE.replace("GET /a?q=b%20c HTTP/2", "-"), Defect::NoRequest, "-");
    }
}
