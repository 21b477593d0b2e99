//! Errors of a network.

use crate::engine::QueueError;
use flashweir_aqm::SettingError;

/// A network cannot be built or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A number is outside its range.
    #[error("{what} is {value}; expected {expected}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// Value given.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// No chain of links leads from one node to the other.
    #[error("no route from node {from} to node {to}")]
    Unreachable {
        /// Node where the route would start.
        from: u32,
        /// Node where it would end.
        to: u32,
    },
    /// A node, link, route or set of TCP settings that this network does not have.
    #[error("there is no {what} {index} in this network")]
    Unknown {
        /// Kind of the unknown item.
        what: &'static str,
        /// Its number.
        index: usize,
    },
    /// A table is full.
    #[error("more than {bound} {what}: the scenario is too large for this bound")]
    TooMany {
        /// Kind of the items.
        what: &'static str,
        /// Maximum number.
        bound: usize,
    },
    /// The queue of events is full.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl From<SettingError> for NetworkError {
    fn from(SettingError { what, value, expected }: SettingError) -> Self {
        Self::Setting { what, value, expected }
    }
}

impl NetworkError {
    /// A [`NetworkError::Setting`] unless `holds`.
    pub(super) fn unless(
        holds: bool,
        what: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::Setting { what, value: value.to_string(), expected }) }
    }
}
