//! Reasons for which numbers make no popularity.

use flashweir_core::limits::DOCUMENTS;

/// The numbers given do not make a popularity.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PopularityError {
    /// Nothing to choose from.
    #[error("a popularity needs at least one document")]
    NoDocuments,
    /// More than [`DOCUMENTS`].
    #[error("a popularity holds at most {DOCUMENTS} documents")]
    TooManyDocuments,
    /// A weight that is negative, infinite or not a number.
    #[error("{weight} is not a weight (of document {index}): expected a finite number, zero or more")]
    NotAWeight {
        /// Number of the document, from zero.
        index: usize,
        /// The weight given.
        weight: f64,
    },
    /// No document would ever be drawn.
    #[error("the weights of all documents are zero: at least one must be above")]
    AllZero,
    /// An exponent that is negative, infinite or not a number.
    #[error("{0} is not the exponent of a Zipf popularity: expected a finite number, zero or more")]
    NotAnExponent(f64),
}
