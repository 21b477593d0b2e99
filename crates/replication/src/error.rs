//! Reason for which settings are refused.

/// A setting out of range: what it is and what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} out of range: expected {expected}")]
pub struct SettingsError {
    what: &'static str,
    expected: &'static str,
}

impl SettingsError {
    pub(crate) const fn new(what: &'static str, expected: &'static str) -> Self {
        Self { what, expected }
    }
}
