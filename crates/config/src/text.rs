//! Durations and sizes as people write them: `"500ms"`, `"2s"`, `"5m"`; `"16KiB"`.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;
use core::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration written as a whole number and a unit: `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationText(pub Duration);

/// A size in bytes written as a whole number and a unit: `B`, `KiB` or `MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeText(pub usize);

/// A rate in bits a second written as a whole number and a unit, as tc(8) writes it: `kbit`, `mbit` or `gbit`
/// (powers of ten).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateText(pub u64);

/// Largest first, so that printing picks the largest unit that divides the value.
const DURATION_UNITS_MS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS_BYTES: [(&str, u64); 3] = [("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

const RATE_UNITS_BITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl DurationText {
    pub(crate) const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    pub(crate) const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

impl FromStr for DurationText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, &DURATION_UNITS_MS).map(Self::from_millis).ok_or_else(|| {
            let example = "like \"500ms\" or \"2s\"";
            format!("`{text}` is not a duration, expected a whole number and ms, s, m or h, {example}")
        })
    }
}

impl FromStr for SizeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, &SIZE_UNITS_BYTES).and_then(|bytes| usize::try_from(bytes).ok()).map(Self).ok_or_else(
            || format!("`{text}` is not a size, expected a whole number and B, KiB or MiB, like \"16KiB\""),
        )
    }
}

impl FromStr for RateText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(&text.to_ascii_lowercase(), &RATE_UNITS_BITS).map(Self).ok_or_else(|| {
            format!("`{text}` is not a rate, expected a whole number and kbit, mbit or gbit, like \"10mbit\"")
        })
    }
}

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, &RATE_UNITS_BITS)
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX), &DURATION_UNITS_MS)
    }
}

impl fmt::Display for SizeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0 as u64, &SIZE_UNITS_BYTES)
    }
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let smallest = units[units.len() - 1];
    let fits = |unit: &&(&str, u64)| value.is_multiple_of(unit.1) && value >= unit.1;
    let (name, factor) = units.iter().find(fits).copied().unwrap_or(smallest);
    write!(f, "{}{name}", value / factor)
}

/// Reads a value written as text; a bare number gets the error that says what it lacks.
struct TextVisitor<T> {
    example_unit: &'static str,
    _type: PhantomData<T>,
}

impl<T: FromStr<Err = String>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string like \"5{}\"", self.example_unit)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let unit = self.example_unit;
        Err(E::custom(format_args!("`{number}` has no unit, expected a string like \"{number}{unit}\"")))
    }
}

macro_rules! written_as_text {
    ($type:ident, $name:literal, $pattern:literal, $example_unit:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let visitor = TextVisitor { example_unit: $example_unit, _type: PhantomData };
                deserializer.deserialize_str(visitor)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "format": $name, "pattern": $pattern})
            }
        }
    };
}

written_as_text!(DurationText, "duration", "^[0-9]+(ms|s|m|h)$", "s");
written_as_text!(SizeText, "size", "^[0-9]+(B|KiB|MiB)$", "KiB");
written_as_text!(RateText, "rate", "^[0-9]+(bit|kbit|mbit|gbit)$", "mbit");

#[cfg(test)]
mod tests {
    use super::{DurationText, RateText, SizeText};
    use core::time::Duration;

    #[test]
    fn durations_are_read_and_printed_in_their_largest_whole_unit() {
        for (text, millis, printed) in [
            ("500ms", 500, "500ms"),
            ("2s", 2_000, "2s"),
            ("5m", 300_000, "5m"),
            ("120m", 7_200_000, "2h"),
            ("0s", 0, "0ms"),
        ] {
            let duration: DurationText = text.parse().unwrap();
            assert_eq!(duration.0, Duration::from_millis(millis));
            assert_eq!(duration.to_string(), printed);
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_an_example() {
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "5 s",
            "5sec",
            "99999999999999999999s",
            "18446744073709551615h",
            "５s",
        ] {
            let message = text.parse::<DurationText>().unwrap_err();
            assert!(message.contains("500ms"), "{text}: {message}");
        }
    }

    #[test]
    fn sizes_are_read_and_printed() {
        for (text, bytes, printed) in
            [("16KiB", 16_384, "16KiB"), ("1024KiB", 1 << 20, "1MiB"), ("100B", 100, "100B")]
        {
            let size: SizeText = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, printed));
        }
        assert!("16KB".parse::<SizeText>().unwrap_err().contains("KiB"));
    }

    #[test]
    fn rates_are_read_in_bits_a_second_and_printed() {
        for (text, bits_per_s, printed) in [
            ("10mbit", 10_000_000, "10mbit"),
            ("10Mbit", 10_000_000, "10mbit"),
            ("1500kbit", 1_500_000, "1500kbit"),
            ("1000mbit", 1_000_000_000, "1gbit"),
        ] {
            let rate: RateText = text.parse().unwrap();
            assert_eq!((rate.0, rate.to_string().as_str()), (bits_per_s, printed));
        }
        for text in ["", "10", "10mb", "1.5mbit", "-1mbit", "18446744073709551615gbit"] {
            assert!(text.parse::<RateText>().unwrap_err().contains("10mbit"), "{text}");
        }
    }
}
