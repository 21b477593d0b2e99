//! What can be wrong with a scenario.

use crate::network::NetworkError;

/// A flash crowd cannot be simulated as described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewsError {
    /// A number is outside its range.
    #[error("{what} is {value}; expected {expected}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What was given.
        value: String,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// The network cannot be built, or a bound was met on the way.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl NewsError {
    /// A [`NewsError::Setting`] unless `holds`.
    pub(super) fn unless(
        holds: bool,
        what: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::Setting { what, value: value.to_string(), expected }) }
    }
}
