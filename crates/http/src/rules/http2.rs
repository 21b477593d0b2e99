//! The rules, asked about a decoded HTTP/2 head and its trailers.
//!
//! The HTTP/2 library has refused already what only HTTP/2 forbids (RFC 9113 §8.2, §8.3: upper-case names,
//! fields that belong to one connection, pseudo-fields that are missing or malformed).

use super::field::{Field, Framing, judge};
use crate::byte_class::TOKEN;
use crate::violation::FramingViolation;
use http::header::{COOKIE, HeaderName, HeaderValue};
use http::{HeaderMap, request};

/// Judges a request's head as HTTP/1.1's would be, with the same bound on the number of its fields.
///
/// A cookie in several lines is one field: browsers split it to compress it better (RFC 9113 §8.2.3).
///
/// # Errors
/// The first [`FramingViolation`]; answer it as for HTTP/1.1.
pub fn judge_http2(head: &request::Parts, fields_max: usize) -> Result<(), FramingViolation> {
    let crumbs = head.headers.get_all(COOKIE).iter().count();
    if head.headers.len() - crumbs.saturating_sub(1) > fields_max {
        return Err(FramingViolation::TooManyFields);
    }
    let mut framing = Framing::default();
    for (name, value) in &head.headers {
        check_name(name)?;
        check_ends(value)?;
        match judge(name.as_str().as_bytes(), value.as_bytes())? {
            Field::Chunked => return Err(FramingViolation::TransferEncoding),
            field => framing.take(field)?,
        }
    }
    if head.uri.authority().is_none() && !framing.has_host {
        return Err(FramingViolation::MissingHost);
    }
    Ok(())
}

/// Judges trailers as HTTP/1.1's would be: no field among them may frame or route a message.
///
/// # Errors
/// [`FramingViolation::Trailer`] or [`FramingViolation::TooManyFields`].
pub fn judge_http2_trailers(trailers: &HeaderMap, fields_max: usize) -> Result<(), FramingViolation> {
    if trailers.len() > fields_max {
        return Err(FramingViolation::TooManyFields);
    }
    for (name, value) in trailers {
        let field = check_name(name)
            .and_then(|()| check_ends(value))
            .and_then(|()| judge(name.as_str().as_bytes(), value.as_bytes()));
        if field != Ok(Field::Other) {
            return Err(FramingViolation::Trailer);
        }
    }
    Ok(())
}

/// The library takes a quotation mark for a part of a name, which in HTTP/1.1 it is not.
fn check_name(name: &HeaderName) -> Result<(), FramingViolation> {
    if TOKEN.has_all(name.as_str().as_bytes()) { Ok(()) } else { Err(FramingViolation::FieldName) }
}

/// HTTP/1.1 cuts blanks around a value off, HTTP/2 forbids them (RFC 9113 §8.2.1): passed on, they would be
/// read as two different values.
fn check_ends(value: &HeaderValue) -> Result<(), FramingViolation> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    if is_blank(bytes.first()) || is_blank(bytes.last()) {
        return Err(FramingViolation::PaddedValue);
    }
    Ok(())
}
