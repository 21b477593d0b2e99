//! Dates of HTTP (RFC 9110 §5.6.7), as seconds since 1970.

use core::time::Duration;
use http::HeaderValue;
use std::time::UNIX_EPOCH;

/// The date of a field; none where it is not one, or lies before 1970.
pub(crate) fn parse(value: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(core::str::from_utf8(value.trim_ascii()).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// The field for a date.
pub(crate) fn format(unix_s: u64) -> HeaderValue {
    let text = UNIX_EPOCH.checked_add(Duration::from_secs(unix_s)).map(httpdate::fmt_http_date);
    // A date is visible ASCII; one that no clock can have is written as 1970.
    text.and_then(|text| HeaderValue::try_from(text).ok())
        .unwrap_or(HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_read_and_one_is_written() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        for text in ["0", "-1", "", "tomorrow", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
