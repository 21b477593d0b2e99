//! A number as text, with its significant digits.

/// Three digits, and as many as a whole number has: enough to tell a number from a bound that it just breaks.
pub(crate) fn significant(value: f64) -> String {
    let digits_before = if value == 0.0 { 1.0 } else { value.abs().log10().floor() + 1.0 };
    let decimals = (3.0 - digits_before).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_significant_and_zeros_behind_the_point_are_not_shown() {
        let texts =
            [0.0, 0.66666, -2.5, 12.34, 205.0, 1024.6, 0.00123, 0.9996, f64::INFINITY].map(significant);
        assert_eq!(texts, ["0", "0.667", "-2.5", "12.3", "205", "1025", "0.00123", "1", "inf"]);
    }
}
