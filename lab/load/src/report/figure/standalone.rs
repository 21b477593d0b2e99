//! A figure in its own file, where no page says what it is called and what its colours mean.

use super::{Figure, LegendEntry, Swatch, WIDTH};
use crate::report::ReportError;
use crate::report::canvas::text_width;
use askama::Template;

/// Pixels: the title's line, a line of the legend, its text, a sample and the gap behind it, and between two
/// entries.
const TITLE: u32 = 28;
const LINE: u32 = 20;
const TEXT: f64 = 12.0;
const SAMPLE: i32 = 22;
const GAP: i32 = 24;
const LEFT: i32 = 4;

#[derive(Template)]
#[template(path = "standalone.svg")]
struct Standalone<'a> {
    title: &'a str,
    width: u32,
    height: u32,
    top: u32,
    entries: Vec<Placed<'a>>,
    plot: &'a str,
}

/// An entry of the legend, and where it is.
struct Placed<'a> {
    name: &'a str,
    colour: String,
    x: i32,
    /// The middle of its line.
    y: u32,
    /// Thickness of its sample.
    thickness: u32,
    dashes: &'static str,
    opacity: &'static str,
}

/// The plot below its title and legend; it is `height` pixels high itself.
pub(super) fn svg(figure: &Figure, height: u32) -> Result<String, ReportError> {
    let entries = placed(figure.legend());
    let top = entries.last().map_or(TITLE, |last| last.y + LINE);
    let standalone = Standalone {
        title: figure.title(),
        width: WIDTH,
        height: top + height,
        top,
        entries,
        plot: figure.svg(),
    };
    Ok(standalone.render()?)
}

/// One after the other, in as many lines as it takes.
fn placed(legend: &[LegendEntry]) -> Vec<Placed<'_>> {
    let (mut x, mut y) = (LEFT, TITLE + LINE / 2);
    let mut entries = Vec::new();
    for entry in legend {
        let width = SAMPLE + text_width(entry.name(), TEXT);
        if x > LEFT && x + width > WIDTH as i32 {
            (x, y) = (LEFT, y + LINE);
        }
        let (thickness, dashes, opacity) = match entry.swatch() {
            Swatch::Line => (2, "none", "1"),
            Swatch::Dashes => (2, "4 3", "1"),
            Swatch::Block => (10, "none", "1"),
            Swatch::Tint => (10, "none", "0.2"),
        };
        let colour = entry.colour();
        entries.push(Placed { name: entry.name(), colour, x, y, thickness, dashes, opacity });
        x += width + GAP;
    }
    entries
}

#[cfg(test)]
mod tests {
    use crate::report::{Chart, Hue, Series};

    #[test]
    fn a_file_of_its_own_has_title_plot_and_a_legend_that_wraps() {
        let mut chart = Chart::new("Rates & more", "seconds", "per second");
        for line in 0..12 {
            let name = format!("a line with quite a long name {line}");
            chart = chart.series(Series::line(name, Hue::Blue, vec![(0.0, Some(1.0)), (1.0, Some(2.0))]));
        }
        let figure = chart.figure().expect("draws");
        let svg = figure.standalone().expect("a document");
        let top: u32 = svg.split("translate(0 ").nth(1).unwrap().split(')').next().unwrap().parse().unwrap();
        assert!(top > 28 + 2 * 20 && top < 28 + 12 * 20, "{top}");
        assert!(
            svg.contains(">Rates &#38; more</text>")
                && svg.contains(">a line with quite a long name 11</text>")
        );
        assert!(svg.contains(figure.svg()));
    }
}
