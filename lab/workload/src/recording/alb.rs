//! Access logs of AWS Application Load Balancers: 12 fields before the request in quotes, of which the second
//! is the time of the answer, and 9 after it, of which the last is the time at which the request came.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_size, is_status, method_and_target};
use crate::recording::fields::next_field;
use crate::recording::log_time;
use crate::recording::problem::Defect;

const NAME: &str = "an ALB's log";
const NO_KIND: Defect =
    Defect::Expected { format: NAME, what: "http, https, h2, grpcs, ws or wss at its beginning" };
/// Values of the first field: the kind of connection.
const KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Splits one line. O(length of the line).
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Flaw<'_>> {
    let mut rest = line;
    let mut next = || next_field(&mut rest);
    // Not shown: the first word of another format's line is often the client.
    if !next().is_some_and(|kind| KINDS.contains(&kind)) {
        return Err(NO_KIND.unshown());
    }
    let few = || Defect::FewFieldsOf { format: NAME, fewest: 13 }.unshown();
    let answered = next().ok_or_else(few)?;
    // Balancer, client, target and three lengths; then the target's status and the bytes received.
    let status = std::iter::from_fn(&mut next).nth(6).ok_or_else(few)?;
    let sent = std::iter::from_fn(&mut next).nth(2).ok_or_else(few)?;
    let request = next().ok_or_else(few)?;
    let came = std::iter::from_fn(&mut next).nth(8);
    let answered = log_time::iso(answered).ok_or(Defect::BadStamp.at(answered))?;
    if !is_status(status) && status != b"-" {
        return Err(Defect::BadStatus.at(status));
    }
    let bytes = checked_size(sent)?;
    let (method, target) = method_and_target(request)?;
    // Balancers of before 2018 do not say when the request came.
    let time = came.and_then(log_time::iso).unwrap_or(answered);
    Ok(Entry { time, method: method.into(), target: EntryTarget::escaped(target), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::log_time::Stamp;

    const LINE: &str = r#"h2 2024-05-17T10:05:03.250Z app/shop/0123 [2001:db8::1]:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET https://shop.example:443/a?q=b%20c HTTP/2.0" "Agent \"x\" 1" ECDHE TLSv1.2 arn:aws:tg "Root=1-58" "shop.example" "-" 0 2024-05-17T10:05:02.000001Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;

    fn check(line: &str, defect: Defect, part: &str) {
        assert_eq!(parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
    }

    #[test]
    fn a_request_came_when_it_was_created() {
        let entry = parse(LINE.as_bytes()).unwrap();
        assert_eq!(entry.time, Stamp { second: 1_715_940_302, nanosecond: Some(1_000) });
        assert_eq!(&*entry.method, b"GET");
        assert_eq!(entry.target, EntryTarget::escaped(&b"https://shop.example:443/a?q=b%20c"[..]));
        assert_eq!(entry.bytes, Some(366));
        let old = &LINE[..LINE.find(" ECDHE").unwrap()];
        assert_eq!(parse(old.as_bytes()).unwrap().time.nanosecond, Some(250_000_000));
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        check("192.0.2.1 - - x", NO_KIND, "");
        check(
            "http 2024-05-17T10:05:03Z a 192.0.2.1:5",
            Defect::FewFieldsOf { format: NAME, fewest: 13 },
            "",
        );
        check(&LINE.replace("2024-05-17T10:05:03.250Z", "noon"), Defect::BadStamp, "noon");
        check(&LINE.replace(" 200 200 34", " OK 200 34"), Defect::BadStatus, "OK");
        check(&LINE.replace(" 366 ", " many "), Defect::BadSize, "many");
        check(&LINE.replace("GET https://shop.example:443/a?q=b%20c HTTP/2.0", "-"), Defect::NoRequest, "-");
    }
}
