//! The HTML document around tables and figures.

use crate::report::figure::{Figure, LegendEntry, Swatch};
use crate::report::{KeyFigure, ReportError, Table, heat_map, palette};
use askama::Template;

const STYLE: &str = include_str!("../../templates/page.css");

/// One self-contained HTML document.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    footer: String,
}

/// A heading and what stands under it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    heading: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Text(String),
    Warning(String),
    KeyFigures(Vec<KeyFigure>),
    Table(Table),
    Figure(Figure),
}

impl Page {
    /// A page with a title and one leading sentence or two: what was found.
    #[must_use]
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), ..Self::default() }
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The small print at the end: how and when this was measured.
    #[must_use]
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// The document. It needs no other file, no script and no network.
    ///
    /// # Errors
    /// [`ReportError::Template`], which no text passed in should cause.
    pub fn html(&self) -> Result<String, ReportError> {
        let dark = palette::dark_rules() + &heat_map::dark_rules();
        Ok(Html { page: self, style: STYLE, dark: &dark }.render()?)
    }
}

impl Section {
    /// An empty section.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    /// Adds a paragraph that must not be missed: why the numbers below are not to be trusted.
    #[must_use]
    pub fn warning(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Warning(text.into()));
        self
    }

    /// Adds a row of numbers in large type, best half a dozen.
    #[must_use]
    pub fn key_figures(mut self, figures: impl IntoIterator<Item = KeyFigure>) -> Self {
        self.blocks.push(Block::KeyFigures(figures.into_iter().collect()));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// Adds a plot.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.blocks.push(Block::Figure(figure));
        self
    }
}

impl LegendEntry {
    /// The sample as the inside of a small SVG; made of nothing but our own constants.
    fn sample(&self) -> String {
        let colour = self.colour();
        match self.swatch() {
            Swatch::Line => format!("<path d=\"M1 6H23\" stroke=\"{colour}\" stroke-width=\"3\"/>"),
            Swatch::Dashes => {
                format!(
                    "<path d=\"M1 6H23\" stroke=\"{colour}\" stroke-width=\"3\" stroke-dasharray=\"6 4\"/>"
                )
            }
            Swatch::Block => format!("<path d=\"M1 1H23V11H1Z\" fill=\"{colour}\" opacity=\"0.6\"/>"),
            Swatch::Tint => format!("<path d=\"M1 1H23V11H1Z\" fill=\"{colour}\" opacity=\"0.2\"/>"),
        }
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Html<'a> {
    page: &'a Page,
    style: &'a str,
    dark: &'a str,
}
