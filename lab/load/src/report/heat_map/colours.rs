//! The colour scale of counts: from few, near the page's colour, to many, far from it.
//!
//! Brightness alone gives the order, so the scale reads the same without colour vision and on grey paper; the
//! change of hue on the way only helps to distinguish neighbours.

use core::fmt::Write;

/// Colours of the scale.
pub(super) const LEVELS: usize = 10;

type Colour = [f64; 3];

/// Colours that the scale passes on a light page: sand, orange, red, plum.
const LIGHT: [Colour; 4] =
    [[248.0, 226.0, 180.0], [238.0, 150.0, 66.0], [176.0, 46.0, 66.0], [46.0, 10.0, 64.0]];
/// And on a dark one: the other way round, and starting above the dark of the panel.
const DARK: [Colour; 4] =
    [[64.0, 40.0, 88.0], [172.0, 58.0, 92.0], [240.0, 146.0, 62.0], [255.0, 242.0, 190.0]];

/// The level of a count on a scale that ends at `highest`: equal ratios differ by equally many levels.
pub(super) fn level(count: f64, highest: f64) -> usize {
    if highest <= 1.0 {
        // One is all there is, and all there is should be seen.
        return LEVELS - 1;
    }
    let share = count.max(1.0).ln() / highest.ln();
    ((share * LEVELS as f64) as usize).min(LEVELS - 1)
}

/// The colour of a level on a light page: what the SVG itself says.
pub(super) fn light(level: usize) -> String {
    hex(between(&LIGHT, level))
}

/// CSS rules for dark pages, as [`crate::report::palette::dark_rules`] makes them.
pub(crate) fn dark_rules() -> String {
    (0..LEVELS).fold(String::new(), |mut rules, level| {
        let dark = hex(between(&DARK, level));
        writeln!(rules, "svg [fill=\"{}\"]{{fill:{dark}}}", light(level))
            .expect("writing to a String cannot fail");
        rules
    })
}

fn between(stops: &[Colour; 4], level: usize) -> Colour {
    let place = level as f64 / (LEVELS - 1) as f64 * (stops.len() - 1) as f64;
    let before = (place as usize).min(stops.len() - 2);
    let share = place - before as f64;
    std::array::from_fn(|part| stops[before][part] + share * (stops[before + 1][part] - stops[before][part]))
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{:02X}{:02X}{:02X}", red.round() as u8, green.round() as u8, blue.round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.2.
    fn luminance(colour: Colour) -> f64 {
        let linear = |part: f64| {
            let part = part / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = colour.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn brightness_alone_tells_the_order() {
        let steps = |stops| (0..LEVELS).map(|level| luminance(between(stops, level))).collect::<Vec<_>>();
        assert!(steps(&LIGHT).windows(2).all(|pair| pair[0] > pair[1]), "{:?}", steps(&LIGHT));
        assert!(steps(&DARK).windows(2).all(|pair| pair[0] < pair[1]), "{:?}", steps(&DARK));
    }

    #[test]
    fn levels_are_equal_ratios() {
        assert_eq!([1.0, 9.9, 10.1, 99.0, 1e10].map(|count| level(count, 1e10)), [0, 0, 1, 1, 9]);
        assert_eq!([level(0.2, 50.0), level(1.0, 1.0), level(1.0, 0.3)], [0, LEVELS - 1, LEVELS - 1]);
    }

    #[test]
    fn light_colours_differ_so_that_each_finds_its_own_dark_twin() {
        let mut rules: Vec<String> = dark_rules().lines().map(str::to_owned).collect();
        rules.dedup();
        assert_eq!(rules.len(), LEVELS);
    }
}
