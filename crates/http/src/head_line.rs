//! Judges one line of a request head or trailer section; the caller has taken its line end off.

use crate::byte_class::TOKEN;
use crate::rules::field::{Field, judge, trim};
use crate::violation::FramingViolation;

/// The part of a request line that framing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestVersion {
    Http10,
    Http11,
}

/// Checks `method SP target SP HTTP/1.x`. RFC 9112 §3.
pub(crate) fn judge_request_line(line: &[u8]) -> Result<RequestVersion, FramingViolation> {
    check_bytes(line)?;
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next()) else {
        return Err(FramingViolation::RequestLine);
    };
    if method.is_empty() || !TOKEN.has_all(method) {
        return Err(FramingViolation::RequestLine);
    }
    // A fragment is part of no request target (RFC 9112 §3.2): some servers cut it off, others look for a file of that name.
    if target.is_empty() || target.contains(&b'\t') || target.contains(&b'#') {
        return Err(FramingViolation::RequestLine);
    }
    // RFC 3986 has ASCII only; what some clients send raw is UTF-8, and the parser above takes nothing else.
    if !target.is_ascii() && str::from_utf8(target).is_err() {
        return Err(FramingViolation::RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok(RequestVersion::Http11),
        b"HTTP/1.0" => Ok(RequestVersion::Http10),
        _ => Err(FramingViolation::Version),
    }
}

/// Checks `name: value` (RFC 9112 §5) and has the field judged as for any version.
pub(crate) fn judge_field(line: &[u8]) -> Result<Field, FramingViolation> {
    check_bytes(line)?;
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(FramingViolation::ObsFold);
    }
    let colon = memchr::memchr(b':', line).ok_or(FramingViolation::FieldName)?;
    let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
    match name.last() {
        None => return Err(FramingViolation::EmptyFieldName),
        Some(b' ' | b'\t') => return Err(FramingViolation::SpaceBeforeColon),
        Some(_) if !TOKEN.has_all(name) => return Err(FramingViolation::FieldName),
        Some(_) => {}
    }
    judge(name, value)
}

/// One branch-free pass over the line finds whether anything is wrong; only then is it looked for.
fn check_bytes(line: &[u8]) -> Result<(), FramingViolation> {
    let is_bad = |byte: u8| (byte < 0x20 && byte != b'\t') || byte == 0x7f;
    if !line.iter().fold(false, |bad, &byte| bad | is_bad(byte)) {
        return Ok(());
    }
    match line.iter().find(|&&byte| is_bad(byte)) {
        Some(b'\r') => Err(FramingViolation::BareCr),
        _ => Err(FramingViolation::ControlByte),
    }
}
