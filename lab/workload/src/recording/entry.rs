//! Result of every format's parser for one line or record.

use crate::recording::log_time::Stamp;
use crate::recording::problem::Defect;
use flashweir_core::limits::RECORDED_METHOD_BYTES;
use std::borrow::Cow;

/// One request of a log. The identity of its client is never taken over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Time of arrival.
    pub(super) time: Stamp,
    pub(super) method: Cow<'a, [u8]>,
    pub(super) target: EntryTarget<'a>,
    /// Size of the answer, where the log has it.
    pub(super) bytes: Option<u64>,
}

/// Target of one request in a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryTarget<'a> {
    /// Path and query in one, with the escapes that the server writes into its log.
    Text(Cow<'a, [u8]>, Escapes),
    /// Path and query in two, as they came.
    Split { path: Cow<'a, [u8]>, query: Option<Cow<'a, [u8]>> },
    /// A document known by number only.
    Object(u32),
}

/// The spelling of bytes that a server does not write into its log as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// It writes all of them as they came.
    None,
    /// `\"` and `\x22`: Apache, nginx.
    Backslash,
    /// `#22`: HAProxy.
    Hash,
}

impl<'a> EntryTarget<'a> {
    /// As it came.
    pub(super) fn plain(text: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::Text(text.into(), Escapes::None)
    }

    /// With the escapes `\"` and `\x22`.
    pub(super) fn escaped(text: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::Text(text.into(), Escapes::Backslash)
    }

    /// The part of it that a message may show.
    pub(super) fn shown(&self) -> &[u8] {
        match self {
            Self::Text(text, _) => text,
            Self::Split { path, .. } => path,
            Self::Object(_) => b"",
        }
    }
}

/// Reason for which a line is no request, and the part of it at fault: never one that may name the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw<'a> {
    pub(super) defect: Defect,
    pub(super) part: Cow<'a, [u8]>,
}

impl Flaw<'_> {
    /// The same, of a text that is not kept.
    pub(super) fn into_owned(self) -> Flaw<'static> {
        Flaw { defect: self.defect, part: Cow::Owned(self.part.into_owned()) }
    }
}

impl Defect {
    /// This defect, found in this part of the line.
    pub(super) fn at<'a>(self, part: impl Into<Cow<'a, [u8]>>) -> Flaw<'a> {
        Flaw { defect: self, part: part.into() }
    }

    /// This defect, of which nothing is shown.
    pub(super) fn unshown(self) -> Flaw<'static> {
        self.at(&b""[..])
    }
}

/// A method as RFC 9110 §5.6.2 spells tokens, and short.
pub(super) fn checked_method<'a>(method: impl Into<Cow<'a, [u8]>>) -> Result<Cow<'a, [u8]>, Flaw<'a>> {
    let method = method.into();
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

/// Returns whether this is the status of an answer: three digits.
pub(super) fn is_status(field: &[u8]) -> bool {
    field.len() == 3 && field.iter().all(u8::is_ascii_digit)
}

/// Method and target of `GET /path HTTP/1.1`, or without the version as HTTP/0.9 had it. A path may hold
/// spaces: some clients send them and some servers log them as they came.
pub(super) fn method_and_target(request: &[u8]) -> Result<(&[u8], &[u8]), Flaw<'_>> {
    let request = request.trim_ascii();
    if request.is_empty() || request == b"-" {
        return Err(Defect::NoRequest.at(request));
    }
    let space = request.iter().position(|byte| *byte == b' ').unwrap_or(request.len());
    let (method, target) = request.split_at(space);
    // `- http://host:80- -`: balancers write so what was no request.
    if method == b"-" {
        return Err(Defect::NoRequest.at(request));
    }
    checked_method(method)?;
    let target = match target.iter().rposition(|byte| *byte == b' ') {
        Some(space) if target[space + 1..].starts_with(b"HTTP/") => &target[..space],
        _ => target,
    };
    let target = target.trim_ascii();
    if target.is_empty() { Err(Defect::NoTarget.at(request)) } else { Ok((method, target)) }
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
        for right in [&b"GET"[..], b"VERSION-CONTROL", &[b'A'; 32]] {
            assert_eq!(checked_method(right), Ok(right.into()));
        }
        for wrong in [&b""[..], b"G\x16", b"\\x16\\x03", b"G:T", &[b'A'; 33]] {
            assert_eq!(checked_method(wrong), Err(Defect::BadMethod.at(wrong)));
        }
    }
}
