//! Options of the field `Connection` (RFC 9110 §7.6.1).

use super::field::Fields;
use super::known::KnownField;
use super::line::trim;
use super::request_line::Version;
use crate::scan::position_of;
use crate::violation::FramingViolation;

/// Options of one head, at most: each may name a field, and each is compared with every field.
const OPTIONS_MAX: usize = 64;

/// Options of one head that have a meaning to the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// `close`.
    pub close: bool,
    /// `keep-alive`.
    pub keep_alive: bool,
    /// `upgrade`.
    pub upgrade: bool,
    /// Options besides these and `te`: names of fields that belong to the connection.
    pub names_fields: bool,
}

impl ConnectionOptions {
    /// Options of a head without the field.
    pub(crate) const NONE: Self =
        Self { close: false, keep_alive: false, upgrade: false, names_fields: false };

    /// Reads them. Cost: nothing where there is no such field, else some instructions for each byte.
    ///
    /// # Errors
    /// [`FramingViolation::TooManyFields`] for more than 64 options.
    pub(crate) fn of(fields: Fields<'_>) -> Result<Self, FramingViolation> {
        let mut options = Self::default();
        let mut values = fields.all(KnownField::Connection);
        let Some(first) = values.next() else { return Ok(options) };
        if position_of(b',', first).is_none() && values.next().is_none() {
            options.add(first);
            return Ok(options);
        }
        for (index, option) in elements(fields, KnownField::Connection).enumerate() {
            if index >= OPTIONS_MAX {
                return Err(FramingViolation::TooManyFields);
            }
            options.add(option);
        }
        Ok(options)
    }

    #[inline]
    fn add(&mut self, option: &[u8]) {
        match option.len() {
            0 => {}
            5 if option.eq_ignore_ascii_case(b"close") => self.close = true,
            10 if option.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive = true,
            7 if option.eq_ignore_ascii_case(b"upgrade") => self.upgrade = true,
            2 if option.eq_ignore_ascii_case(b"te") => {}
            _ => self.names_fields = true,
        }
    }

    /// Returns whether the connection goes on (RFC 9112 §9.3): `close` overrides `keep-alive`, which HTTP/1.0
    /// needs.
    #[must_use]
    pub fn is_persistent(self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// Elements of a field that is a list (RFC 9110 §5.6.1), of all its lines, empty ones left out.
pub fn elements<'b>(fields: Fields<'b>, known: KnownField) -> impl Iterator<Item = &'b [u8]> {
    let elements = fields.all(known).flat_map(|value| value.split(|&byte| byte == b','));
    elements.map(trim).filter(|element| !element.is_empty())
}
