//! Reads a request line: `method SP target SP HTTP/1.x CRLF` (RFC 9112 §3).

use super::field::Span;
use super::line::check_bytes;
use super::target::Target;
use crate::byte_class::TOKEN;
use crate::scan::position_of;
use crate::violation::FramingViolation;

/// Version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Method, as far as framing and connections depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD: its answer has no content (RFC 9110 §9.3.2).
    Head,
    /// POST.
    Post,
    /// OPTIONS.
    Options,
    /// CONNECT: a 2xx makes a tunnel (RFC 9110 §9.3.6).
    Connect,
    /// TRACE.
    Trace,
    /// Any other.
    Other,
}

impl Method {
    /// Method of this name, which is case-sensitive (RFC 9110 §9.1).
    #[must_use]
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"OPTIONS" => Self::Options,
            b"CONNECT" => Self::Connect,
            b"TRACE" => Self::Trace,
            _ => Self::Other,
        }
    }
}

/// Parts of a request line as places in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    pub(crate) method_name: Span,
    pub(crate) target: Target,
    pub(crate) version: Version,
}

impl RequestLine {
    /// No line.
    pub(crate) const NONE: Self = Self {
        method: Method::Other,
        method_name: Span::EMPTY,
        target: Target::NONE,
        version: Version::Http11,
    };
}

const VERSION_BYTES: usize = "HTTP/1.1".len();

/// Reads a good line at `at`, and the place behind it, in one pass; leaves any other to
/// [`judge_request_line`].
#[inline]
pub(crate) fn read_ordinary(bytes: &[u8], at: usize) -> Option<(RequestLine, usize)> {
    let line = bytes.get(at..)?;
    let method_end = position_of(b' ', line)?;
    let target_start = method_end + 1;
    let target = line.get(target_start..)?;
    let target = &target[..memchr::memchr(b' ', target)?];
    // An absolute target may hold bytes here that are checked before it is split.
    if target.first() != Some(&b'/') {
        return None;
    }
    let version_start = target_start + target.len() + 1;
    let version = match line.get(version_start..)?.first_chunk::<{ VERSION_BYTES + 2 }>()? {
        b"HTTP/1.1\r\n" => Version::Http11,
        b"HTTP/1.0\r\n" => Version::Http10,
        _ => return None,
    };
    let method = &line[..method_end];
    if method.is_empty() || !TOKEN.has_all(method) {
        return None;
    }
    let read = RequestLine {
        method: Method::of(method),
        method_name: Span::new(at, at + method_end),
        target: Target::judge(target, at + target_start).ok()?,
        version,
    };
    Some((read, at + version_start + VERSION_BYTES + 2))
}

/// Judges a whole line, which is `bytes[at..end]` without its line end, by all rules in their order.
///
/// # Errors
/// The first rule that the line breaks.
pub(crate) fn judge_request_line(
    bytes: &[u8],
    at: usize,
    end: usize,
) -> Result<RequestLine, FramingViolation> {
    let line = bytes.get(at..end).unwrap_or_default();
    check_bytes(line)?;
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(FramingViolation::RequestLine);
    };
    if method.is_empty() || !TOKEN.has_all(method) {
        return Err(FramingViolation::RequestLine);
    }
    let target = Target::judge(target, at + method.len() + 1)?;
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => return Err(FramingViolation::Version),
    };
    let method_name = Span::new(at, at + method.len());
    Ok(RequestLine { method: Method::of(method), method_name, target, version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    #[test]
    fn both_readers_find_the_same() {
        let words = [
            &["GET", "HEAD", "G(T", "", "GE\r"][..],
            &[" ", " ", "  ", "\t", ""],
            &["/", "/a?b", "*", "http://a/", "/<", "", "/\0"],
            &[" ", " ", "  ", "\r"],
            &["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/1.1 ", "HTTP/1.1\r"],
        ];
        let mut rng = Rng::new(11);
        let mut taken = 0;
        for _ in 0..20_000 {
            let line = words.map(|choices| choices[rng.below(choices.len() as u64) as usize]).concat();
            let whole = format!("{line}\r\n");
            let Some((read, next)) = read_ordinary(whole.as_bytes(), 0) else { continue };
            taken += 1;
            assert_eq!(next, whole.len());
            assert_eq!(judge_request_line(line.as_bytes(), 0, line.len()), Ok(read), "{line:?}");
        }
        assert!(taken > 100, "{taken} good lines");
    }

    #[test]
    fn the_first_broken_rule_is_named() {
        use FramingViolation::*;
        for (line, violation) in [
            ("GET /\r HTTP/1.1", BareCr),
            ("GET\t/\tHTTP/1.1", RequestLine),
            ("GET  / HTTP/1.1", RequestLine),
            ("GET /", RequestLine),
            (" / HTTP/1.1", RequestLine),
            ("G(T / HTTP/1.1", RequestLine),
            ("GET /<a> HTTP/1.1", RequestTarget),
            ("GET  HTTP/1.1", RequestTarget),
            ("GET /<a> HTTP/2.0", RequestTarget),
            ("GET / HTTP/1.2", Version),
            ("GET / http/1.1", Version),
        ] {
            let judged = judge_request_line(line.as_bytes(), 0, line.len());
            assert_eq!(judged, Err(violation), "{line}");
            assert_eq!(read_ordinary(format!("{line}\r\n").as_bytes(), 0), None, "{line}");
        }
        let line = b"OPTIONS * HTTP/1.0";
        let read = judge_request_line(line, 0, line.len()).expect("a good line");
        assert_eq!((read.method, read.version), (Method::Options, super::Version::Http10));
    }
}
