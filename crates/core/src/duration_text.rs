//! Lengths of time as people write them: `500ms`, `1.5s`, `2m`, `1h`.

use crate::text_error::TextError;
use core::fmt;
use core::time::Duration;

/// Reads a number above zero and its unit: `ms`, `s`, `m` or `h`.
///
/// ```
/// use flashweir_core::duration_text;
/// use core::time::Duration;
/// assert_eq!(duration_text::parse("1.5s")?, Duration::from_millis(1500));
/// assert!(duration_text::parse("0s").is_err() && duration_text::parse_or_zero("0s").is_ok());
/// # Ok::<(), flashweir_core::TextError>(())
/// ```
///
/// # Errors
/// Anything else, zero, less than half a nanosecond, or more than a `Duration` holds.
pub fn parse(text: &str) -> Result<Duration, TextError> {
    let expected = "a length of time: expected a number above zero and ms, s, m or h, like 500ms or 2s";
    read(text).filter(|duration| !duration.is_zero()).ok_or_else(|| TextError::new(text, expected))
}

/// Reads what [`parse`] reads, and zero (with a unit) too.
///
/// # Errors
/// As for [`parse`], except zero.
pub fn parse_or_zero(text: &str) -> Result<Duration, TextError> {
    let expected = "a length of time: expected a number and ms, s, m or h, like 0s, 500ms or 2s";
    read(text).ok_or_else(|| TextError::new(text, expected))
}

/// Writes a length of time so that [`parse_or_zero`] reads the same back, to the nanosecond up to a day.
///
/// ```
/// use flashweir_core::DurationText;
/// use core::time::Duration;
/// assert_eq!(DurationText(Duration::from_secs(90)).to_string(), "90s");
/// assert_eq!(DurationText(Duration::from_micros(1500)).to_string(), "1.5ms");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if nanoseconds == 0 {
            return write!(out, "0s");
        }
        let units = [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s")];
        match units.into_iter().find(|(length, _)| nanoseconds.is_multiple_of(*length)) {
            Some((length, unit)) => write!(out, "{}{unit}", nanoseconds / length),
            None => write!(out, "{}ms", nanoseconds as f64 / 1e6),
        }
    }
}

fn read(text: &str) -> Option<Duration> {
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_read_with_their_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(parse_or_zero("0ms"), Ok(Duration::ZERO));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for wrong in ["", "5", "s", "-1s", "1e300h", "1e3s", "1d", "NaNs", "infs", "5sec", "5s ", "5µs"] {
            assert_eq!(parse_or_zero(wrong).unwrap_err().text, wrong);
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("0s").is_err() && parse("0.0000001ms").is_err());
        assert_eq!(
            parse_or_zero("5 days").unwrap_err().to_string(),
            "\"5 days\" is not a length of time: expected a number and ms, s, m or h, like 0s, 500ms or 2s"
        );
    }

    #[test]
    fn lengths_are_written_in_the_largest_unit_that_keeps_them_whole() {
        for text in ["0s", "1ms", "0.000001ms", "1500ms", "2s", "90s", "2m", "1h", "25h"] {
            assert_eq!(DurationText(parse_or_zero(text).unwrap()).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(nanoseconds in 0u64..86_400_000_000_000) {
            let length = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(parse_or_zero(&DurationText(length).to_string()), Ok(length));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}|[-+.0-9eE]{0,8}(ms|s|m|h)?") {
            let _ = parse(&text);
        }
    }
}
