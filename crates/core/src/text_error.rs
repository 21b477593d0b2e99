//! Message about text that cannot be read.

use alloc::borrow::ToOwned as _;
use alloc::string::String;

/// A text is not what it was read as; says which text and what was expected.
///
/// ```
/// use flashweir_core::duration_text;
/// let wrong = duration_text::parse("2").unwrap_err().to_string();
/// assert!(wrong.starts_with("\"2\" is not a length of time: expected"), "{wrong}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct TextError {
    /// The text, as it was given.
    pub text: String,
    /// The accepted form, and an example.
    pub expected: &'static str,
}

impl TextError {
    /// `text` was to be `expected`.
    #[must_use]
    pub fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.to_owned(), expected }
    }
}
