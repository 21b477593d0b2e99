//! Rates of links, amounts of data, room in buffers, and stretches of them, as people write them.

use flashweir_core::limits::SIM_PACKETS;
use flashweir_sim::network::Buffer;
use std::str::FromStr;

/// Bits a second: `21kb/s`, `9.4Mb/s`. One bit a second at least, a terabit at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BitRate(pub(crate) u64);

/// Bytes: `300B`, `64kB`, `10MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteCount(pub(crate) u64);

/// Room for what waits: `50 packets`, or an amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room(pub(crate) Buffer);

/// From a least to a most, `21kb/s-10Mb/s`; a single value is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<T> {
    pub(crate) least: T,
    pub(crate) most: T,
}

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 4] = [("b/s", 1.0), ("kb/s", 1e3), ("Mb/s", 1e6), ("Gb/s", 1e9)];
        match amount(text, &UNITS) {
            Some(rate) if (1.0..=1e12).contains(&rate) => Ok(Self(rate as u64)),
            _ => Err(format!(
                "\"{text}\" is not a rate: expected bits a second from 1b/s to 1000Gb/s, like 21kb/s or 9.4Mb/s"
            )),
        }
    }
}

impl FromStr for ByteCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 4] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];
        match amount(text, &UNITS) {
            Some(bytes) if (1.0..=1e15).contains(&bytes) => Ok(Self(bytes as u64)),
            _ => Err(format!(
                "\"{text}\" is not an amount of data: expected 1B to 1000000GB, like 64kB or 10MB"
            )),
        }
    }
}

impl FromStr for Room {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is no room for packets: expected one like \"50 packets\" or \"64kB\", at most {SIM_PACKETS} packets"
            )
        };
        let count = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        match count {
            Some(count) => {
                let count: u32 = count.trim().parse().map_err(|_| wrong())?;
                if count as usize > SIM_PACKETS {
                    return Err(wrong());
                }
                Ok(Self(Buffer::Packets(count)))
            }
            None => text.parse().map(|ByteCount(bytes)| Self(Buffer::Bytes(bytes))).map_err(|_| wrong()),
        }
    }
}

impl<T: FromStr<Err = String> + PartialOrd + Copy> FromStr for Span<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((least, most)) = text.split_once('-') else {
            let only = text.parse()?;
            return Ok(Self { least: only, most: only });
        };
        let (least, most) = (least.trim().parse()?, most.trim().parse()?);
        if least <= most {
            Ok(Self { least, most })
        } else {
            Err(format!("\"{text}\": expected the least first"))
        }
    }
}

/// A number and its unit, rounded to whole ones.
fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|one: char| one.is_ascii_alphabetic())?);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let number: f64 = number.trim().parse().ok()?;
    Some((number * factor).round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::text::Time;

    #[test]
    fn amounts_are_read_with_their_units() {
        assert_eq!("9.4Mb/s".parse(), Ok(BitRate(9_400_000)));
        assert_eq!("21 kb/s".parse(), Ok(BitRate(21_000)));
        assert_eq!("10MB".parse(), Ok(ByteCount(10_000_000)));
        assert_eq!("6 packets".parse(), Ok(Room(Buffer::Packets(6))));
        assert_eq!("0 packets".parse(), Ok(Room(Buffer::Packets(0))));
        assert_eq!("64 kB".parse(), Ok(Room(Buffer::Bytes(64_000))));
        assert_eq!("21kb/s-10Mb/s".parse(), Ok(Span { least: BitRate(21_000), most: BitRate(10_000_000) }));
        let span: Span<Time> = "0.5ms-1.8s".parse().unwrap();
        assert_eq!((span.least.0.as_micros(), span.most.0.as_micros()), (500, 1_800_000));
    }

    #[test]
    fn what_nobody_can_mean_is_refused() {
        for wrong in ["", "5", "Mb/s", "0b/s", "-1Mb/s", "2000Gb/s", "5MB", "NaNMb/s", "9mb/s"] {
            let said = wrong.parse::<BitRate>().unwrap_err();
            assert!(said.starts_with(&format!("\"{wrong}\" is not a rate")), "{said}");
        }
        for wrong in ["", "6", "packets", "-1 packets", "1.5 packets", "17000000 packets", "0B", "5 Mb/s"] {
            let said = wrong.parse::<Room>().unwrap_err();
            assert!(said.starts_with(&format!("\"{wrong}\" is no room")), "{said}");
        }
        assert!("10Mb/s-21kb/s".parse::<Span<BitRate>>().unwrap_err().contains("the least first"));
        assert!("1Mb/s-".parse::<Span<BitRate>>().unwrap_err().contains("is not a rate"));
    }
}
