//! One field of a head or of trailers: its effect on framing and routing, and the values that are refused.

use crate::violation::FramingViolation;
use flashweir_http1::head::is_authority;
use http::HeaderMap;

/// A field, classified by its effect on framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    ContentLength(u64),
    Chunked,
    Host,
    Other,
}

/// Checks one field whose name is a token; blanks around the value are gone. RFC 9110 §5, RFC 9112 §6.
pub(crate) fn judge(name: &[u8], value: &[u8]) -> Result<Field, FramingViolation> {
    match name.len() {
        4 if name.eq_ignore_ascii_case(b"host") => judge_host(value),
        14 if is_spelling_of(name, b"content-length")? => judge_content_length(value),
        17 if is_spelling_of(name, b"transfer-encoding")? => {
            if value.eq_ignore_ascii_case(b"chunked") {
                Ok(Field::Chunked)
            } else {
                Err(FramingViolation::TransferEncoding)
            }
        }
        _ => Ok(Field::Other),
    }
}

/// The fields of a head that framing and routing depend on, seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<u64>,
    pub(crate) is_chunked: bool,
    pub(crate) has_host: bool,
}

impl Framing {
    /// Takes note of one field; each of them may come once.
    pub(crate) fn take(&mut self, field: Field) -> Result<(), FramingViolation> {
        match field {
            Field::ContentLength(_) if self.content_length.is_some() => {
                return Err(FramingViolation::RepeatedContentLength);
            }
            Field::ContentLength(length) => self.content_length = Some(length),
            Field::Chunked if self.is_chunked => return Err(FramingViolation::RepeatedTransferEncoding),
            Field::Chunked => self.is_chunked = true,
            Field::Host if self.has_host => return Err(FramingViolation::RepeatedHost),
            Field::Host => self.has_host = true,
            Field::Other => {}
        }
        Ok(())
    }
}

/// The length that a response's `Content-Length` fields agree on: repeated equal values are one (RFC 9110
/// §8.6).
///
/// # Errors
/// [`FramingViolation::ContentLength`] for what is no length, or several.
pub(crate) fn agreed_content_length(headers: &HeaderMap) -> Result<Option<u64>, FramingViolation> {
    let mut agreed = None;
    for line in headers.get_all(http::header::CONTENT_LENGTH) {
        for element in line.as_bytes().split(|&byte| byte == b',') {
            let Field::ContentLength(length) = judge_content_length(trim(element))? else { continue };
            if agreed.is_some_and(|other| other != length) {
                return Err(FramingViolation::ContentLength);
            }
            agreed = Some(length);
        }
    }
    Ok(agreed)
}

/// Optional white space is SP and HTAB only (RFC 9110 §5.6.3).
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != b' ' && *byte != b'\t';
    match (value.iter().position(is_text), value.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &value[first..=last],
        _ => &[],
    }
}

/// Gateway interfaces such as CGI turn `-` into `_`, and some every other sign, too (`Content.Length`), so
/// such a spelling of a framing field would reach some servers as that very field: refused rather than passed
/// on.
fn is_spelling_of(name: &[u8], wanted: &[u8]) -> Result<bool, FramingViolation> {
    if name.eq_ignore_ascii_case(wanted) {
        return Ok(true);
    }
    let is_sign = |byte: u8| !byte.is_ascii_alphanumeric();
    let is_meant = name
        .iter()
        .zip(wanted)
        .all(|(&byte, &want)| byte.eq_ignore_ascii_case(&want) || (want == b'-' && is_sign(byte)));
    if is_meant { Err(FramingViolation::FieldName) } else { Ok(false) }
}

/// 18 digits cannot overflow and are more bytes than any body has.
fn judge_content_length(value: &[u8]) -> Result<Field, FramingViolation> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingViolation::ContentLength);
    }
    let length = value.iter().fold(0u64, |length, &digit| length * 10 + u64::from(digit - b'0'));
    Ok(Field::ContentLength(length))
}

fn judge_host(value: &[u8]) -> Result<Field, FramingViolation> {
    if is_authority(value) { Ok(Field::Host) } else { Err(FramingViolation::InvalidHost) }
}
