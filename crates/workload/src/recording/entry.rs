//! Result of every format's parser for one line or record.

use crate::recording::problem::Defect;
use flashweir_core::limits::RECORDED_METHOD_BYTES;

/// One request of a log. Who made it is never taken over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Seconds since 1970 (UTC).
    pub(super) second: i64,
    pub(super) method: &'a [u8],
    pub(super) target: Target<'a>,
    /// Size of the answer, where the log has it.
    pub(super) bytes: Option<u64>,
}

/// The requested target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// As it came.
    Plain(&'a [u8]),
    /// With the escapes that web servers write into their logs (`\"`, `\x22`).
    Escaped(&'a [u8]),
    /// A document known by number only.
    Object(u32),
}

impl<'a> Target<'a> {
    /// The part of it that a message may show.
    pub(super) fn shown(&self) -> &'a [u8] {
        match self {
            Self::Plain(text) | Self::Escaped(text) => text,
            Self::Object(_) => b"",
        }
    }
}

/// Why a line is no request, and the part of it at fault: never one that may name the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw<'a> {
    pub(super) defect: Defect,
    pub(super) part: &'a [u8],
}

impl Defect {
    /// This defect, found in this part of the line.
    pub(super) fn at(self, part: &[u8]) -> Flaw<'_> {
        Flaw { defect: self, part }
    }
}

/// A method as RFC 9110 §5.6.2 spells tokens, and short.
pub(super) fn checked_method(method: &[u8]) -> Result<&[u8], Flaw<'_>> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if (1..=RECORDED_METHOD_BYTES).contains(&method.len()) && method.iter().all(is_token) {
        Ok(method)
    } else {
        Err(Defect::BadMethod.at(method))
    }
}

/// The size of an answer: a number, or `-` for none.
pub(super) fn checked_size(field: &[u8]) -> Result<Option<u64>, Flaw<'_>> {
    if field == b"-" {
        return Ok(None);
    }
    let digits = str::from_utf8(field).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.map(Some).ok_or(Defect::BadSize.at(field))
}

/// Whether this is the status of an answer: three digits.
pub(super) fn is_status(field: &[u8]) -> bool {
    field.len() == 3 && field.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(checked_size(b"-"), Ok(None));
        assert_eq!(checked_size(b"0"), Ok(Some(0)));
        assert_eq!(checked_size(b"203023"), Ok(Some(203_023)));
        for wrong in [&b""[..], b"+5", b"-5", b"1.5", b"99999999999999999999", b"\xff"] {
            assert_eq!(checked_size(wrong), Err(Defect::BadSize.at(wrong)));
        }
    }

    #[test]
    fn methods_are_short_tokens() {
        assert_eq!(checked_method(b"GET"), Ok(&b"GET"[..]));
        assert_eq!(checked_method(b"VERSION-CONTROL"), Ok(&b"VERSION-CONTROL"[..]));
        assert_eq!(checked_method(&[b'A'; 32]), Ok(&[b'A'; 32][..]));
        for wrong in [&b""[..], b"G\x16", b"\\x16\\x03", b"G:T", &[b'A'; 33]] {
            assert_eq!(checked_method(wrong), Err(Defect::BadMethod.at(wrong)));
        }
    }
}
