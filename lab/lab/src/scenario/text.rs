//! Values that people write as text (`"exp:2s"`), or as a bare number where that says enough.

use flashweir_core::Duration;
use flashweir_workload::duration_text;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

/// A value that is read from text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Text<T>(pub(crate) T);

/// One such value, or several in an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

/// A length of time with its unit: `500ms`, `1.5s`, `2m`, `1h`; zero is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Duration);

/// A rate and the time that goes with it: `500@10s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateAt {
    pub(crate) rate_per_s: f64,
    pub(crate) at: Duration,
}

/// A stretch of time: `10s-20s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration_text::parse_or_zero(text).map(Self).map_err(|error| error.to_string())
    }
}

impl FromStr for RateAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\" is not RATE@TIME: expected people a second and when, like 500@10s");
        let (rate, at) = text.split_once('@').ok_or_else(wrong)?;
        let rate_per_s: f64 = rate.trim().parse().map_err(|_| wrong())?;
        let Time(at) = at.trim().parse().map_err(|_| wrong())?;
        Ok(Self { rate_per_s, at })
    }
}

impl FromStr for Stretch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{text}\" is not FROM-TO: expected two times, the later one last, like 10s-20s");
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (Time(from), Time(to)) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
        if from < to { Ok(Self { from, to }) } else { Err(wrong()) }
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ManyReader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);
struct ManyReader<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for Reader<T> {
    type Value = Text<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        one(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        one(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        one(&number.to_string())
    }
}

impl<'de, T: FromStr<Err: Display>> Visitor<'de> for ManyReader<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, or several texts in an array")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        one(text).map(|Text(value)| OneOrMany(vec![value]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Text(value)) = sequence.next_element()? {
            values.push(value);
        }
        Ok(OneOrMany(values))
    }
}

fn one<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<Text<T>, E> {
    text.parse().map(Text).map_err(E::custom)
}
