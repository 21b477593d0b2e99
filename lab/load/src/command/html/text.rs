//! Numbers as the page writes them.

use crate::report::number;

/// Placeholder where nothing was measured.
pub(super) const NOTHING: &str = "–";

/// A count, with commas between thousands.
pub(super) fn count(count: u64) -> String {
    number(count as f64, 0)
}

/// A part of a whole in percent. Neither end is claimed by rounding alone: 100 % are all and 0 % none.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NOTHING.to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match part {
        0 => "0 %".to_owned(),
        _ if part == whole => "100 %".to_owned(),
        _ if percent < 0.1 => "< 0.1 %".to_owned(),
        _ if part < whole && percent >= 99.95 => "> 99.9 %".to_owned(),
        _ => format!("{} %", number(percent, 1)),
    }
}

/// A measured number with its unit, to three digits or so: no second run repeats a fourth.
pub(super) fn measured(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{} {unit}", digits(value)))
}

/// The same without a unit, for the cells of a table.
pub(super) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    number(value, decimals)
}

/// A length of time in seconds.
pub(super) fn seconds(seconds: f64) -> String {
    let decimals = if seconds == seconds.round() { 0 } else { 1 };
    format!("{} s", number(seconds, decimals))
}

/// A count with its noun: "1 try", "2,000 tries".
pub(super) fn plural(of: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(of), if of == 1 { one } else { many })
}

/// Bytes in the unit that leaves few digits.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1e3 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{} {}", digits(value), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_claims_all_or_nobody() {
        let shares = [(0, 9), (1, 100_000), (1, 3), (99_999, 100_000), (9, 9), (0, 0), (7, 5)];
        let texts = shares.map(|(part, whole)| share(part, whole));
        assert_eq!(texts, ["0 %", "< 0.1 %", "33.3 %", "> 99.9 %", "100 %", NOTHING, "140.0 %"]);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(
            [0.0, 0.0421, 6.7251, 42.04, 2_004.7].map(digits),
            ["0", "0.042", "6.73", "42.0", "2,005"]
        );
        assert_eq!([0.0, 999.0, 1_500.0, 3.2e12].map(bytes), ["0 B", "999 B", "1.50 kB", "3,200 GB"]);
        assert_eq!((seconds(30.0), seconds(0.5)), ("30 s".to_owned(), "0.5 s".to_owned()));
        assert_eq!((plural(1, "try", "tries"), plural(2_000, "try", "tries")).1, "2,000 tries");
    }
}
