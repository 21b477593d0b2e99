//! Judges one line of a request head or trailer section; the caller has taken its line end off.

use crate::byte_class::{PATH, QUERY, TOKEN};
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
    judge_target(target)?;
    match version {
        b"HTTP/1.1" => Ok(RequestVersion::Http11),
        b"HTTP/1.0" => Ok(RequestVersion::Http10),
        _ => Err(FramingViolation::Version),
    }
}

/// Longest target that the parser above reads.
const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Checks a request target (RFC 9112 §3.2): refused is what the parser above would refuse without saying why.
fn judge_target(target: &[u8]) -> Result<(), FramingViolation> {
    if target.len() > TARGET_BYTES_MAX {
        return Err(FramingViolation::HeadTooLarge);
    }
    let is_good = if target.first() == Some(&b'/') {
        let query = memchr::memchr(b'?', target).unwrap_or(target.len());
        // A fragment is part of no target: some servers cut it off, others look for a file of that name.
        let are_good = PATH.has_all(&target[..query])
            && target[query..].get(1..).is_none_or(|query| QUERY.has_all(query));
        // RFC 3986 has ASCII only; what some clients send unencoded is UTF-8.
        are_good && (target.is_ascii() || str::from_utf8(target).is_ok())
    } else {
        !target.contains(&b'#') && http::Uri::try_from(target).is_ok()
    };
    if is_good { Ok(()) } else { Err(FramingViolation::RequestTarget) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_refused_where_the_parser_would_refuse_it() {
        for byte in (0..=255u8).filter(|byte| *byte != b'#') {
            for before in ["/", "/a?", "http://a/", "a.example:"] {
                let target = [before.as_bytes(), &[byte, b'b']].concat();
                let parses = http::Uri::try_from(target.as_slice()).is_ok();
                assert_eq!(judge_target(&target).is_ok(), parses, "{}", target.escape_ascii());
            }
        }
        let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        for bytes in [TARGET_BYTES_MAX, TARGET_BYTES_MAX + 1] {
            let parses = http::Uri::try_from(long(bytes)).is_ok();
            assert_eq!(judge_target(long(bytes).as_bytes()).is_ok(), parses, "{bytes}");
        }
        for (target, is_good) in [
            ("*", true),
            ("", false),
            ("/a^b|{c}[d]\"e\\f", true),
            ("/a`b", false),
            ("/a?`b", true),
            ("/a?\"b", false),
            ("/a#b", false),
        ] {
            assert_eq!(judge_target(target.as_bytes()).is_ok(), is_good, "{target}");
        }
    }
}
