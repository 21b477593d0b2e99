//! Errors in settings.

use alloc::string::{String, ToString};

/// A setting is outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {value}; expected {expected}")]
pub struct SettingError {
    /// Name of the setting.
    pub what: &'static str,
    /// The value given.
    pub value: String,
    /// The accepted values.
    pub expected: &'static str,
}

impl SettingError {
    /// A [`SettingError`] unless `holds`.
    pub(crate) fn unless(
        holds: bool,
        what: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { what, value: value.to_string(), expected }) }
    }
}
