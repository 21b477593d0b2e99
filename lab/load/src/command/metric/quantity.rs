//! Kinds of figures: how their values are read and written.

/// Kind of number of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Quantity {
    /// A whole number.
    Count,
    /// A part of a whole, 0 to 1.
    Share,
    /// Number a second.
    Rate,
    /// Ratio of two numbers.
    Factor,
    /// Milliseconds; infinity is never.
    Time,
}

/// Units of time and how many milliseconds each is.
const TIME_UNITS: [(&str, f64); 6] =
    [("us", 1e-3), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3_600e3)];

impl Quantity {
    /// Reads a value with its unit.
    ///
    /// # Errors
    /// Describes the fault and the accepted form.
    pub(in super::super) fn read(self, metric: &str, text: &str) -> Result<f64, String> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, unit) = text.split_at(unit_at);
        let unit = unit.trim();
        let wrong = || Err(format!("\"{text}\" is not {}", self.expected(metric)));
        // A number that overflows has too many digits: a mistake.
        let Some(number) = digits.parse().ok().filter(|number: &f64| number.is_finite()) else {
            return wrong();
        };
        match self {
            Self::Time => match TIME_UNITS.iter().find(|(name, _)| *name == unit) {
                Some((_, ms)) => Ok(number * ms),
                None if unit.is_empty() => {
                    Err(format!("{metric} is a time: write {digits}ms or {digits}s, with the unit"))
                }
                None => wrong(),
            },
            Self::Share => match unit {
                "%" if number <= 100.0 => Ok(number / 100.0),
                "" if number <= 1.0 => Ok(number),
                "" if number <= 100.0 => Err(format!("{metric} lies between 0 and 1: write {digits}%?")),
                _ => wrong(),
            },
            Self::Count if unit.is_empty() && number.fract() == 0.0 => Ok(number),
            Self::Rate if matches!(unit, "" | "/s") => Ok(number),
            Self::Factor if matches!(unit, "" | "x" | "×") => Ok(number),
            Self::Count | Self::Rate | Self::Factor => wrong(),
        }
    }

    fn expected(self, metric: &str) -> String {
        match self {
            Self::Count => format!("a count: {metric} needs a whole number"),
            Self::Share => format!("a share: {metric} needs a number from 0 to 1, or 0% to 100%"),
            Self::Rate => format!("a rate: {metric} needs a number, so many a second"),
            Self::Factor => format!("a factor: {metric} needs a number"),
            Self::Time => format!("a time: {metric} needs a number and us, ms, s, m or h, like 500ms"),
        }
    }
}

/// A value as people read it, with its unit.
pub(in super::super) fn written(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Count => crate::report::number(value, 0),
        Quantity::Share => format!("{:.2} %", value * 100.0),
        Quantity::Rate => format!("{}/s", crate::report::number(value, 1)),
        Quantity::Factor => format!("{value:.3}"),
        Quantity::Time if value.is_infinite() => "never".to_owned(),
        // Three or four significant digits for any size.
        Quantity::Time if value < 1.0 => format!("{:.0} us", value * 1e3),
        Quantity::Time if value < 100.0 => format!("{value:.2} ms"),
        Quantity::Time if value < 10_000.0 => format!("{value:.1} ms"),
        Quantity::Time => format!("{:.1} s", value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_the_units_that_fit() {
        assert_eq!(Quantity::Time.read("p99", "1.5s"), Ok(1500.0));
        assert_eq!(Quantity::Time.read("p99", "200 us"), Ok(0.2));
        assert_eq!(Quantity::Share.read("goodput_ratio", "95%"), Ok(0.95));
        assert_eq!(Quantity::Share.read("goodput_ratio", ".95"), Ok(0.95));
        assert_eq!(Quantity::Count.read("errors", "0"), Ok(0.0));
        assert_eq!(Quantity::Rate.read("goodput_rps", "100.5/s"), Ok(100.5));
    }

    #[test]
    fn a_wrong_unit_is_told_with_the_right_one() {
        let check = |quantity: Quantity, text: &str, wanted: &str| {
            let said = quantity.read("m", text).unwrap_err();
            assert!(said.contains(wanted), "{text}: {said} lacks {wanted}");
        };
        check(Quantity::Time, "500", "write 500ms or 500s");
        check(Quantity::Time, "5%", "like 500ms");
        check(Quantity::Time, "", "like 500ms");
        check(Quantity::Time, "-5ms", "like 500ms");
        check(Quantity::Time, "1.2.3ms", "like 500ms");
        check(Quantity::Share, "95", "write 95%?");
        check(Quantity::Share, "101%", "0% to 100%");
        check(Quantity::Share, "5ms", "0 to 1");
        check(Quantity::Count, "0.5", "whole number");
        check(Quantity::Count, "5ms", "whole number");
        check(Quantity::Rate, "5%", "so many a second");
        check(Quantity::Factor, "1e3", "a factor");
    }

    #[test]
    fn values_are_written_with_the_digits_that_matter() {
        let time = |ms| written(ms, Quantity::Time);
        assert_eq!(
            [time(0.0412), time(9.876), time(612.34), time(12_345.6)],
            ["41 us", "9.88 ms", "612.3 ms", "12.3 s"]
        );
        assert_eq!(time(f64::INFINITY), "never");
        assert_eq!(written(0.9512, Quantity::Share), "95.12 %");
        assert_eq!(written(12_345.0, Quantity::Count), "12,345");
    }
}
