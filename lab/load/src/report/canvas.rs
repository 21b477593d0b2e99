//! A thin layer over plotters' SVG backend: pixels in, SVG elements out, one error type.

use crate::report::{Hue, ReportError};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};

/// Pixels of one dash and of the gap after it.
const DASH: i32 = 6;
/// plotters divides font sizes by this factor when it writes SVG (em square against line height).
const FONT_FACTOR: f64 = 1.24;

/// A pixel: x to the right, y down.
pub(crate) type Pixel = (i32, i32);

/// A drawing in progress.
pub(crate) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    title: &'a str,
}

/// Draws into a canvas and gives the SVG elements, without the `<svg>` tag around them.
pub(crate) fn draw(
    title: &str,
    size: (u32, u32),
    drawing: impl FnOnce(&Canvas<'_>) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let mut text = String::new();
    let canvas = Canvas { area: SVGBackend::with_string(&mut text, size).into_drawing_area(), title };
    drawing(&canvas)?;
    canvas.area.present().map_err(|problem| canvas.error(problem))?;
    drop(canvas);
    // The figure writes its own <svg> tag, with a title for readers who hear the page.
    let start = text.find('>').map_or(0, |end| end + 1);
    let end = text.rfind("</svg>").unwrap_or(text.len());
    Ok(text[start..end].trim().to_owned())
}

impl Canvas<'_> {
    pub(crate) fn line(&self, points: Vec<Pixel>, hue: Hue, width: u32) -> Result<(), ReportError> {
        let style = ShapeStyle { color: hue.light().to_rgba(), filled: false, stroke_width: width };
        self.area.draw(&PathElement::new(points, style)).map_err(|problem| self.error(problem))
    }

    /// A horizontal or vertical dashed line.
    pub(crate) fn dashed(&self, from: Pixel, to: Pixel, hue: Hue, width: u32) -> Result<(), ReportError> {
        let length = (to.0 - from.0).max(to.1 - from.1);
        let along = |distance: i32| {
            let distance = distance.min(length);
            if to.0 > from.0 { (from.0 + distance, from.1) } else { (from.0, from.1 + distance) }
        };
        (0..length.max(0))
            .step_by(2 * DASH as usize)
            .try_for_each(|start| self.line(vec![along(start), along(start + DASH)], hue, width))
    }

    pub(crate) fn polygon(&self, points: Vec<Pixel>, hue: Hue, opacity: f64) -> Result<(), ReportError> {
        let fill = hue.light().mix(opacity).filled();
        self.area.draw(&Polygon::new(points, fill)).map_err(|problem| self.error(problem))
    }

    pub(crate) fn rectangle(&self, corners: [Pixel; 2], hue: Hue, opacity: f64) -> Result<(), ReportError> {
        let fill = hue.light().mix(opacity).filled();
        self.area.draw(&Rectangle::new(corners, fill)).map_err(|problem| self.error(problem))
    }

    /// Text of `size` pixels whose anchor (horizontal, vertical) is at `at`.
    pub(crate) fn text(
        &self,
        text: &str,
        at: Pixel,
        (horizontal, vertical): (HPos, VPos),
        (hue, size): (Hue, f64),
    ) -> Result<(), ReportError> {
        let colour = hue.light();
        let style = TextStyle::from(("sans-serif", size * FONT_FACTOR).into_font())
            .color(&colour)
            .pos(Pos::new(horizontal, vertical));
        self.area.draw_text(text, &style, at).map_err(|problem| self.error(problem))
    }

    fn error(&self, problem: impl std::fmt::Display) -> ReportError {
        ReportError::Drawing { figure: self.title.to_owned(), problem: problem.to_string() }
    }
}

/// Width of a text with this number of characters, generously: SVG has no fonts to measure before it is
/// shown.
pub(crate) fn text_width(text: &str, size: f64) -> i32 {
    (text.chars().count() as f64 * size * 0.56).ceil() as i32
}
