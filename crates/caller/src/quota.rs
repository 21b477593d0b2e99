//! What the standard fields say about when to send again, read strictly: what is not understood says nothing.
//!
//! * `Retry-After` (RFC 9110 §10.2.3), whole seconds; a date is the shell's, which has a clock of the day.
//! * `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10): `"name";r=REMAINING;t=SECONDS`, a List of which the first exhausted item counts.
//! * `grpc-retry-pushback-ms` (gRPC proposal A6): milliseconds; negative or unreadable: do not retry.

use flashweir_core::Duration;

/// A sender obeys no quota for longer than this: a wrong number must not keep it away for a day.
pub(crate) const HOLD_MAX: Duration = Duration::from_secs(60);
/// Digits of the largest number that is read.
const DIGITS_MAX: usize = 9;

/// What a quota says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests that are left.
    pub remaining: u64,
    /// Time until there are more.
    pub reset: Duration,
}

/// Whole seconds.
#[must_use]
pub fn parse_seconds(value: &[u8]) -> Option<Duration> {
    number(value.trim_ascii()).map(Duration::from_secs)
}

/// The most restrictive item of a `RateLimit` value: the exhausted one with the longest time, or else the first that is complete.
#[must_use]
pub fn parse_rate_limit(value: &[u8]) -> Option<Quota> {
    let items = value.split(|&byte| byte == b',').filter_map(item);
    items.reduce(|one, other| match (one.remaining, other.remaining) {
        (0, 0) if other.reset > one.reset => other,
        (0, _) => one,
        (_, 0) => other,
        _ => one,
    })
}

/// When a server lets a call be tried again; none where it forbids it.
#[must_use]
pub fn parse_pushback_ms(value: &[u8]) -> Option<Duration> {
    number(value).map(Duration::from_millis)
}

fn item(item: &[u8]) -> Option<Quota> {
    let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next()?;
    if name.len() < 2 || name.first() != Some(&b'"') || name.last() != Some(&b'"') {
        return None;
    }
    let (mut remaining, mut reset) = (None, None);
    for part in parts {
        match part {
            [b'r', b'=', digits @ ..] => remaining = Some(number(digits)?),
            [b't', b'=', digits @ ..] => reset = Some(Duration::from_secs(number(digits)?)),
            _ => {}
        }
    }
    Some(Quota { remaining: remaining?, reset: reset? })
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.len() <= DIGITS_MAX && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quota(value: &str) -> Option<(u64, u64)> {
        parse_rate_limit(value.as_bytes()).map(|quota| (quota.remaining, quota.reset.as_secs()))
    }

    #[test]
    fn the_exhausted_item_counts() {
        assert_eq!(quota(r#""default";r=50;t=30"#), Some((50, 30)));
        assert_eq!(quota(r#""burst";r=3;t=1, "daily";r=0;t=600"#), Some((0, 600)));
        assert_eq!(quota(r#""a";r=0;t=5,"b";r=0;t=9"#), Some((0, 9)));
        assert_eq!(quota(r#""a"; t=5; r=1; pk=:YQ==:"#), Some((1, 5)));
        for wrong in [
            "",
            "default;r=1;t=1",
            r#""a";r=1"#,
            r#""a";r=-1;t=1"#,
            r#""a";r=1;t=1.5"#,
            r#""a";r=9999999999;t=1"#,
        ] {
            assert_eq!(quota(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn seconds_and_pushback_are_plain_numbers() {
        assert_eq!(parse_seconds(b" 12 "), Some(Duration::from_secs(12)));
        assert_eq!(parse_seconds(b"Wed, 21 Oct 2015 07:28:00 GMT"), None);
        assert_eq!(parse_pushback_ms(b"250"), Some(Duration::from_millis(250)));
        assert_eq!(parse_pushback_ms(b"-1"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (parse_rate_limit(&bytes), parse_seconds(&bytes), parse_pushback_ms(&bytes));
        }
    }
}
