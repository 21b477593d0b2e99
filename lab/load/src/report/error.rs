//! Errors of making a report.

/// A report that could not be made. Both cases are faults of this crate, not of the numbers passed in.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The SVG backend refused an element.
    #[error("the plot \"{figure}\" could not be drawn: {problem}")]
    Drawing {
        /// The figure's title.
        figure: String,
        /// Message of the backend.
        problem: String,
    },
    /// The page's template failed.
    #[error("the page could not be written: {0}")]
    Template(#[from] askama::Error),
}
