//! The colours of plots: few, distinct for colour-blind readers, and each with a twin for dark pages.

use core::fmt::Write;
use plotters::style::RGBColor;

/// A colour with a meaning only the caller gives it (after Okabe and Ito's palette, darkened for white
/// paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hue {
    /// Strong blue.
    Blue,
    /// Red-orange.
    Vermillion,
    /// Bluish green.
    Green,
    /// Amber.
    Amber,
    /// Light blue.
    Sky,
    /// Purple-pink.
    Purple,
    /// Neutral grey, for context.
    Grey,
    /// The colour of text.
    Ink,
    /// Quiet text: tick labels.
    Quiet,
    /// Grid lines.
    Grid,
}

impl Hue {
    const ALL: [Self; 10] = [
        Self::Blue,
        Self::Vermillion,
        Self::Green,
        Self::Amber,
        Self::Sky,
        Self::Purple,
        Self::Grey,
        Self::Ink,
        Self::Quiet,
        Self::Grid,
    ];

    /// The colour on a light page: what the SVG itself says.
    pub(crate) const fn light(self) -> RGBColor {
        match self {
            Self::Blue => RGBColor(0x00, 0x66, 0xA8),
            Self::Vermillion => RGBColor(0xC8, 0x50, 0x00),
            Self::Green => RGBColor(0x00, 0x87, 0x63),
            Self::Amber => RGBColor(0xC9, 0x84, 0x00),
            Self::Sky => RGBColor(0x8C, 0xC3, 0xE6),
            Self::Purple => RGBColor(0xA8, 0x4F, 0x86),
            Self::Grey => RGBColor(0xA9, 0xB0, 0xB7),
            Self::Ink => RGBColor(0x1C, 0x23, 0x2B),
            Self::Quiet => RGBColor(0x55, 0x5F, 0x6A),
            Self::Grid => RGBColor(0xE1, 0xE5, 0xE9),
        }
    }

    const fn dark(self) -> RGBColor {
        match self {
            Self::Blue => RGBColor(0x5A, 0xAE, 0xF0),
            Self::Vermillion => RGBColor(0xF5, 0x8A, 0x4B),
            Self::Green => RGBColor(0x3C, 0xCB, 0xA0),
            Self::Amber => RGBColor(0xF0, 0xB9, 0x4A),
            Self::Sky => RGBColor(0xB5, 0xDD, 0xF7),
            Self::Purple => RGBColor(0xDE, 0x92, 0xC2),
            Self::Grey => RGBColor(0x6A, 0x74, 0x80),
            Self::Ink => RGBColor(0xE6, 0xEA, 0xEE),
            Self::Quiet => RGBColor(0xA3, 0xAD, 0xB8),
            Self::Grid => RGBColor(0x33, 0x3B, 0x44),
        }
    }

    /// The light colour as CSS and SVG write it.
    pub(crate) fn hex(self) -> String {
        hex(self.light())
    }
}

/// CSS rules that turn every light colour found in a plot into its dark twin.
///
/// The SVG keeps plain colours, so that a plot cut out of the page still looks right anywhere.
pub(crate) fn dark_rules() -> String {
    Hue::ALL.iter().fold(String::new(), |mut rules, hue| {
        let (light, dark) = (hue.hex(), hex(hue.dark()));
        writeln!(rules, "svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}}")
            .expect("writing to a String cannot fail");
        rules
    })
}

// Upper case, as plotters writes it: attribute selectors compare letter by letter.
fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_colours_differ_so_that_each_finds_its_own_dark_twin() {
        for (index, hue) in Hue::ALL.iter().enumerate() {
            assert!(Hue::ALL[index + 1..].iter().all(|other| other.hex() != hue.hex()), "{hue:?}");
        }
        assert_eq!(dark_rules().lines().count(), Hue::ALL.len());
    }
}
