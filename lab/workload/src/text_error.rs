//! Message about text that cannot be read.

/// A text is not what it was read as; says which text and what was expected.
///
/// ```
/// use flashweir_workload::people::Wait;
/// let wrong = "exp:2".parse::<Wait>().unwrap_err().to_string();
/// assert!(wrong.starts_with("\"exp:2\" is not a wait: expected"), "{wrong}");
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
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.to_owned(), expected }
    }
}
