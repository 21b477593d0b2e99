//! Judges one line of a request head or trailer section; the caller has taken its line end off.

use crate::violation::FramingViolation;

/// What a request line says that framing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestVersion {
    Http10,
    Http11,
}

/// A field line, told apart by what framing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    ContentLength(u64),
    Chunked,
    Host,
    Other,
}

/// Checks `method SP target SP HTTP/1.x`. RFC 9112 §3.
pub(crate) fn judge_request_line(line: &[u8]) -> Result<RequestVersion, FramingViolation> {
    check_bytes(line)?;
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next()) else {
        return Err(FramingViolation::RequestLine);
    };
    if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
        return Err(FramingViolation::RequestLine);
    }
    if target.is_empty() || target.contains(&b'\t') {
        return Err(FramingViolation::RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok(RequestVersion::Http11),
        b"HTTP/1.0" => Ok(RequestVersion::Http10),
        _ => Err(FramingViolation::Version),
    }
}

/// Checks `name: value` and reads the fields that frame a message. RFC 9112 §5, §6.
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
        Some(_) if !name.iter().all(|&byte| is_token(byte)) => return Err(FramingViolation::FieldName),
        Some(_) => {}
    }
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

/// Gateway interfaces such as CGI turn `-` into `_`, so an underscore spelling of a framing field would
/// reach some servers as that very field: refused rather than passed on.
fn is_spelling_of(name: &[u8], wanted: &[u8]) -> Result<bool, FramingViolation> {
    if name.eq_ignore_ascii_case(wanted) {
        return Ok(true);
    }
    let underscored = name
        .iter()
        .zip(wanted)
        .all(|(&byte, &want)| byte.eq_ignore_ascii_case(&want) || (byte == b'_' && want == b'-'));
    if underscored { Err(FramingViolation::FieldName) } else { Ok(false) }
}

/// 18 digits cannot overflow and are more bytes than any body has.
fn judge_content_length(value: &[u8]) -> Result<Field, FramingViolation> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingViolation::ContentLength);
    }
    let length = value.iter().fold(0u64, |length, &digit| length * 10 + u64::from(digit - b'0'));
    Ok(Field::ContentLength(length))
}

/// `uri-host [":" port]` (RFC 3986 §3.2.2) by its alphabet: no list, blank, path, user or query fits in it.
fn judge_host(value: &[u8]) -> Result<Field, FramingViolation> {
    let fits = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(&byte);
    if value.iter().all(fits) { Ok(Field::Host) } else { Err(FramingViolation::InvalidHost) }
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

/// Optional white space is SP and HTAB only (RFC 9110 §5.6.3).
fn trim(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != b' ' && *byte != b'\t';
    match (value.iter().position(is_text), value.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &value[first..=last],
        _ => &[],
    }
}

/// `tchar` of RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
