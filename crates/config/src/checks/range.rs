//! Ranges: one message for each value outside.

use core::fmt::Display;

use crate::error::Problem;
use crate::text::DurationText;

/// `value`, when it lies within `low` and `high`, both included.
pub(crate) fn within<T: PartialOrd + Display>(key: &str, value: T, low: T, high: T) -> Result<T, Problem> {
    // Written so that NaN is outside.
    if value >= low && value <= high {
        return Ok(value);
    }
    Err(Problem::new(key, format!("{value} is out of range, expected {low} to {high}")))
}

/// As [`within`], for durations written as text.
pub(crate) fn duration_within(
    key: &str,
    value: DurationText,
    low: DurationText,
    high: DurationText,
) -> Result<core::time::Duration, Problem> {
    within(key, value, low, high).map(|duration| duration.0)
}

/// As [`within`], for counts that index memory.
pub(crate) fn count_within(key: &str, value: u32, low: u32, high: u32) -> Result<usize, Problem> {
    // Lossless: no supported target has a usize below 32 bits.
    within(key, value, low, high).map(|count| count as usize)
}
