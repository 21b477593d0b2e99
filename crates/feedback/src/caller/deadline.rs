//! The field `Flashweir-Deadline`: how many milliseconds are left until the answer to a request is of no use.
//!
//! A duration and not a time of day, so that clocks need not agree; each hop subtracts what it spent. A
//! request whose deadline is over is not sent: nodes deeper in a chain then drop what nodes before them have
//! given up on.

use alloc::string::{String, ToString as _};
use flashweir_core::Duration;

/// The field's name.
pub const DEADLINE: &str = "flashweir-deadline";
/// The longest deadline that is taken: a day. A longer one is no deadline that overload control could use.
pub const DEADLINE_MAX: Duration = Duration::from_secs(86_400);
/// Digits of the longest value.
const DIGITS_MAX: usize = 8;
const _: () = assert!(DEADLINE_MAX.as_millis() < 10u128.pow(DIGITS_MAX as u32));

/// The value is no number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Flashweir-Deadline: expected whole milliseconds from 0 to 86400000")]
pub struct DeadlineError;

/// Reads a value: an Integer of RFC 9651 without sign.
///
/// # Errors
/// [`DeadlineError`] for anything but 1 to 8 digits, and for more than [`DEADLINE_MAX`].
pub fn parse_deadline(value: &[u8]) -> Result<Duration, DeadlineError> {
    if value.is_empty() || value.len() > DIGITS_MAX || !value.iter().all(u8::is_ascii_digit) {
        return Err(DeadlineError);
    }
    let millis = value.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let left = Duration::from_millis(millis);
    if left > DEADLINE_MAX { Err(DeadlineError) } else { Ok(left) }
}

/// The field of gRPC that says the same.
pub const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Digits of a value of `grpc-timeout` at most (gRPC over HTTP/2, "Timeout").
const GRPC_DIGITS_MAX: usize = 8;

/// Reads a value of `grpc-timeout`: 1 to 8 digits and a unit. None for anything else; what is longer than
/// [`DEADLINE_MAX`] is that.
#[must_use]
pub fn parse_grpc_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > GRPC_DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let left = match unit {
        b'H' => Duration::from_secs(count * 3_600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    };
    Some(left.min(DEADLINE_MAX))
}

/// The value of `grpc-timeout` for what is left, rounded down to milliseconds; none where the digits do not
/// suffice.
#[must_use]
pub fn grpc_timeout_text(left: Duration) -> Option<String> {
    let millis = left.as_millis();
    (millis < 10u128.pow(GRPC_DIGITS_MAX as u32)).then(|| alloc::format!("{millis}m"))
}

/// The value for what is left, rounded down so that no hop adds time.
#[must_use]
pub fn deadline_text(left: Duration) -> String {
    left.min(DEADLINE_MAX).as_millis().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_whole_milliseconds() {
        assert_eq!(parse_deadline(b"0"), Ok(Duration::ZERO));
        assert_eq!(parse_deadline(b"1500"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_deadline(b"86400000"), Ok(DEADLINE_MAX));
        for wrong in
            [&b""[..], b"-1", b"+1", b"1.5", b" 1", b"1 ", b"86400001", b"123456789", b"1e3", b"\xb2"]
        {
            assert_eq!(parse_deadline(wrong), Err(DeadlineError), "{wrong:?}");
        }
        assert_eq!(deadline_text(Duration::from_micros(1_999)), "1");
        assert_eq!(deadline_text(Duration::MAX), "86400000");
    }

    #[test]
    fn a_timeout_of_grpc_is_digits_and_a_unit() {
        for (value, expected) in [
            ("1H", Some(Duration::from_secs(3_600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("000000100m", None),
            ("100m", Some(Duration::from_millis(100))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("5n", Some(Duration::from_nanos(5))),
            ("99999999H", Some(DEADLINE_MAX)),
            ("", None),
            ("m", None),
            ("5", None),
            ("5s", None),
            ("-5m", None),
        ] {
            assert_eq!(parse_grpc_timeout(value.as_bytes()), expected, "{value}");
        }
        assert_eq!(grpc_timeout_text(Duration::from_micros(1_999)).as_deref(), Some("1m"));
        assert_eq!(grpc_timeout_text(Duration::from_secs(86_400)).as_deref(), Some("86400000m"));
        assert_eq!(grpc_timeout_text(Duration::from_secs(100_000)), None);
    }

    proptest! {
        #[test]
        fn a_hop_never_adds_time(micros in 0u64..200_000_000_000) {
            let left = Duration::from_micros(micros);
            let received = parse_deadline(deadline_text(left).as_bytes()).unwrap();
            prop_assert!(received <= left);
            prop_assert!(left > DEADLINE_MAX || left - received < Duration::from_millis(1));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let _ = parse_deadline(&bytes);
            let _ = parse_grpc_timeout(&bytes);
        }
    }
}
