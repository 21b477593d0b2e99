//! The standard fields that say when to send again, read strictly: a field that is not understood is ignored.
//!
//! * `Retry-After` (RFC 9110 §10.2.3), whole seconds; a date is the shell's, which has a clock of the day.
//! * `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10): `"name";r=REMAINING;t=SECONDS`, a List of which the first exhausted item counts.
//! * `grpc-retry-pushback-ms` (gRPC proposal A6): milliseconds; negative or unreadable: do not retry.
//!
//! An answer spends the quota of its caller where `RateLimit` says so, or where it is a refusal because of a
//! quota (status 429, or `grpc-status` 8, RESOURCE_EXHAUSTED) that names a time. A 503 and `grpc-status` 14
//! say that the service is short: that is no quota. A gRPC answer with messages has these fields in its
//! trailers, one without in its head; [`quota_of`] reads either.

use flashweir_core::Duration;

/// A sender obeys no quota for longer than this: a wrong number must not keep it away for a day.
pub const HOLD_MAX: Duration = Duration::from_secs(60);
/// While a quota is spent, a request in this many of those offered goes on, so that a changed quota is
/// noticed.
pub const HOLD_PART: u64 = 100;
const TOO_MANY_REQUESTS: u16 = 429;
/// The value of `grpc-status` for RESOURCE_EXHAUSTED.
const RESOURCE_EXHAUSTED: &[u8] = b"8";
/// Digits of the largest number that is read.
const DIGITS_MAX: usize = 9;

/// A quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests that are left.
    pub remaining: u64,
    /// Time until there are more.
    pub reset: Duration,
}

/// The quota that a head with this status, or trailers without one, speak of. `field` is the first value of a
/// field by its name in lower case, `date` the time until an HTTP date, for which the shell has a clock.
pub fn quota_of<'a>(
    status: Option<u16>,
    field: impl Fn(&str) -> Option<&'a [u8]>,
    date: impl FnOnce(&[u8]) -> Option<Duration>,
) -> Option<Quota> {
    if let Some(quota) = field("ratelimit").and_then(parse_rate_limit) {
        return Some(quota);
    }
    let is_refused = status == Some(TOO_MANY_REQUESTS) || field("grpc-status") == Some(RESOURCE_EXHAUSTED);
    let reset = is_refused.then(|| retry_after_of(field, date)).flatten()?;
    Some(Quota { remaining: 0, reset: reset? })
}

/// Time until the request may be tried again, as far as the fields say: `grpc-retry-pushback-ms` before
/// `Retry-After`. `Some(None)` where the server forbids it, `None` where it says nothing that can be read.
/// Arguments as in [`quota_of`].
pub fn retry_after_of<'a>(
    field: impl Fn(&str) -> Option<&'a [u8]>,
    date: impl FnOnce(&[u8]) -> Option<Duration>,
) -> Option<Option<Duration>> {
    match field("grpc-retry-pushback-ms") {
        Some(value) => Some(parse_pushback_ms(value)),
        None => field("retry-after").and_then(|value| parse_seconds(value).or_else(|| date(value))).map(Some),
    }
}

/// Whole seconds.
#[must_use]
pub fn parse_seconds(value: &[u8]) -> Option<Duration> {
    number(value.trim_ascii()).map(Duration::from_secs)
}

/// The most restrictive item of a `RateLimit` value: the exhausted one with the longest time, or else the
/// first that is complete.
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

/// Time until a server lets a call be tried again; none where it forbids it.
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

    #[test]
    fn a_quota_is_spent_by_a_refusal_that_names_a_time() {
        let of = |status, fields: &[(&str, &'static str)]| {
            let field = |name: &str| {
                fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes())
            };
            quota_of(status, field, |_| None).map(|quota| (quota.remaining, quota.reset.as_millis()))
        };
        let pushback = ("grpc-retry-pushback-ms", "1500");
        assert_eq!(of(None, &[("grpc-status", "8"), pushback]), Some((0, 1_500)));
        assert_eq!(of(Some(200), &[("grpc-status", "8"), ("retry-after", "2")]), Some((0, 2_000)));
        assert_eq!(of(None, &[("grpc-status", "8"), pushback, ("retry-after", "2")]), Some((0, 1_500)));
        assert_eq!(of(Some(429), &[pushback]), Some((0, 1_500)));
        for (status, other) in [(None, "14"), (Some(200), "0"), (Some(503), "80"), (None, "")] {
            assert_eq!(of(status, &[("grpc-status", other), pushback]), None, "{other}");
        }
        let forbidden = ("grpc-retry-pushback-ms", "-1");
        assert_eq!(of(None, &[("grpc-status", "8"), forbidden]), None, "no time is named");
        assert_eq!(of(Some(429), &[forbidden, ("retry-after", "2")]), None);
        assert_eq!(of(None, &[("ratelimit", r#""a";r=0;t=2"#)]), Some((0, 2_000)), "with any status");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (parse_rate_limit(&bytes), parse_seconds(&bytes), parse_pushback_ms(&bytes));
        }
    }
}
