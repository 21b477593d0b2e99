//! Request targets (RFC 9112 §3.2): their four forms, and the bytes that each may hold.
//!
//! What is taken here is what a URI parser can read with one result. Whether such a target is served (an
//! absolute one of `http`, `*` with OPTIONS) is decided above.

use super::field::Span;
use crate::byte_class::{PATH, QUERY, SCHEME, URI};
use crate::violation::FramingViolation;

/// Longest target, bytes: offsets of 16 bits are common in parsers behind this one.
pub(crate) const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;
/// Longest scheme of a URI, bytes.
const SCHEME_BYTES_MAX: usize = 64;
/// Colons of an authority after its user information: eight in the longest IPv6 address with a port.
const COLONS_MAX: u32 = 8;

/// Form of a request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`.
    Origin,
    /// `scheme://authority/path?query`, with the scheme `http` or `https` if `is_web`.
    Absolute {
        /// The scheme is `http` or `https`, in any case.
        is_web: bool,
    },
    /// `host:port`, as CONNECT has it.
    Authority,
    /// `*`, for OPTIONS.
    Asterisk,
}

/// Parts of a target as places in the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) form: TargetForm,
    pub(crate) whole: Span,
    /// Empty in origin-form and for `*`.
    pub(crate) authority: Span,
    /// Path and query, without the authority. May be empty in absolute-form.
    pub(crate) path_and_query: Span,
}

impl Target {
    /// No target.
    pub(crate) const NONE: Self = Self {
        form: TargetForm::Origin,
        whole: Span::EMPTY,
        authority: Span::EMPTY,
        path_and_query: Span::EMPTY,
    };

    /// Judges the target that stands at `at`.
    ///
    /// # Errors
    /// [`FramingViolation::HeadTooLarge`] for more bytes than a target may have, else
    /// [`FramingViolation::RequestTarget`].
    #[inline]
    pub(crate) fn judge(target: &[u8], at: usize) -> Result<Self, FramingViolation> {
        if target.len() > TARGET_BYTES_MAX {
            return Err(FramingViolation::HeadTooLarge);
        }
        let end = at + target.len();
        let whole = Span::new(at, end);
        if target.first() == Some(&b'/') {
            let form = TargetForm::Origin;
            let authority = Span::new(at, at);
            return match is_path_and_query(target) {
                true => Ok(Self { form, whole, authority, path_and_query: whole }),
                false => Err(FramingViolation::RequestTarget),
            };
        }
        let (form, authority, path) = split(target).ok_or(FramingViolation::RequestTarget)?;
        Ok(Self {
            form,
            whole,
            authority: Span::new(at + authority.0, at + authority.1),
            path_and_query: Span::new(at + path, end),
        })
    }
}

/// Returns whether `path` may stand before a `?` and the rest behind it. A fragment (`#`) is part of no
/// target: some servers cut it off, others look for a file of that name. RFC 3986 has ASCII only; the bytes
/// beyond it that some clients send unencoded are UTF-8.
#[inline]
fn is_path_and_query(target: &[u8]) -> bool {
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    PATH.has_all(&target[..query])
        && target.get(query + 1..).is_none_or(|query| QUERY.has_all(query))
        && (target.is_ascii() || core::str::from_utf8(target).is_ok())
}

/// Form, ends of the authority and beginning of the path, of a target that does not begin with `/`.
fn split(target: &[u8]) -> Option<(TargetForm, (usize, usize), usize)> {
    if target == b"*" {
        return Some((TargetForm::Asterisk, (0, 0), 0));
    }
    let scheme = scheme_end(target)?;
    let start = scheme.map_or(0, |end| end + "://".len());
    let rest = &target[start..];
    let end = start + authority_end(rest)?;
    let Some(scheme) = scheme else {
        let is_all = end == target.len();
        return is_all.then_some((TargetForm::Authority, (start, end), end));
    };
    let path = &target[end..];
    let is_good = end > start && (path.is_empty() || is_path_and_query(path));
    let scheme = &target[..scheme];
    let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    is_good.then_some((TargetForm::Absolute { is_web }, (start, end), end))
}

/// End of the scheme before `://`, if there is one; `None` where that is too long.
fn scheme_end(target: &[u8]) -> Option<Option<usize>> {
    let end = target.iter().position(|&byte| !SCHEME.has(byte));
    match end {
        Some(end) if target[end..].starts_with(b"://") => (end <= SCHEME_BYTES_MAX).then_some(Some(end)),
        _ => Some(None),
    }
}

/// End of the authority (RFC 3986 §3.2) with which `bytes` begin: user information, then a name, an IPv4
/// address or something in brackets, then at most one colon.
fn authority_end(bytes: &[u8]) -> Option<usize> {
    let (mut colons, mut has_percent) = (0, false);
    let (mut is_open, mut is_closed) = (false, false);
    let mut end = bytes.len();
    let mut last = None;
    for (index, &byte) in bytes.iter().enumerate() {
        match byte {
            b'/' | b'?' | b'#' => {
                end = index;
                break;
            }
            b'%' => has_percent = true,
            _ if !URI.has(byte) => return None,
            b':' if colons >= COLONS_MAX => return None,
            b':' => colons += 1,
            b'[' if has_percent || is_open => return None,
            b'[' => is_open = true,
            b']' if !is_open || is_closed => return None,
            b']' => (is_closed, colons, has_percent) = (true, 0, false),
            // These belonged to the user information.
            b'@' => (colons, has_percent) = (0, false),
            _ => {}
        }
        last = Some(byte);
    }
    let is_good = is_open == is_closed && colons <= 1 && !has_percent && last != Some(b'@');
    (is_good && !bytes.is_empty()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    fn form(target: &[u8]) -> Result<TargetForm, FramingViolation> {
        Target::judge(target, 0).map(|target| target.form)
    }

    /// The URI parser that serves requests today has the last word on targets.
    #[test]
    fn a_target_is_refused_where_a_uri_parser_refuses_it() {
        let parses = |target: &[u8]| !target.contains(&b'#') && http::Uri::try_from(target).is_ok();
        for byte in 0..=255u8 {
            for before in ["/", "/a?", "http://a/", "http://a?", "a.example:", "http://", ""] {
                let target = [before.as_bytes(), &[byte, b'b']].concat();
                assert_eq!(form(&target).is_ok(), parses(&target), "{}", target.escape_ascii());
            }
        }
        let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        assert!(form(long(TARGET_BYTES_MAX).as_bytes()).is_ok());
        assert_eq!(form(long(TARGET_BYTES_MAX + 1).as_bytes()), Err(FramingViolation::HeadTooLarge));
        let parts = [
            "http",
            "https",
            "HTTP",
            "ftp",
            "://",
            ":",
            "/",
            "//",
            "?",
            "*",
            "@",
            "[",
            "]",
            "::1",
            "a",
            "80",
            "%",
            "%41",
            "~",
            "\"",
            "`",
            "\u{e4}",
            ".",
            "-",
            ":::::::::",
            "&",
        ];
        let mut rng = Rng::new(3);
        let mut good = 0;
        for _ in 0..300_000 {
            let parts = (0..rng.below(8)).map(|_| parts[rng.below(parts.len() as u64) as usize]);
            let target = parts.collect::<String>();
            let is_good = form(target.as_bytes()).is_ok();
            good += usize::from(is_good);
            assert_eq!(is_good, parses(target.as_bytes()), "{target}");
        }
        assert!(good > 10_000, "{good}");
    }

    #[test]
    fn forms_are_recognised_and_split() {
        for (target, expected, authority, path) in [
            ("/a?b", TargetForm::Origin, "", "/a?b"),
            ("*", TargetForm::Asterisk, "", "*"),
            ("http://a:80/b?c", TargetForm::Absolute { is_web: true }, "a:80", "/b?c"),
            ("HTTPS://u@a", TargetForm::Absolute { is_web: true }, "u@a", ""),
            ("ftp://a?b", TargetForm::Absolute { is_web: false }, "a", "?b"),
            ("a:443", TargetForm::Authority, "a:443", ""),
        ] {
            let bytes = [b"GET ", target.as_bytes()].concat();
            let judged = Target::judge(target.as_bytes(), 4).expect(target);
            assert_eq!(judged.form, expected, "{target}");
            assert_eq!(judged.authority.of(&bytes), authority.as_bytes(), "{target}");
            assert_eq!(judged.path_and_query.of(&bytes), path.as_bytes(), "{target}");
        }
        for bad in ["", "/a#b", "http://a#b", "/\u{80}?<", "http:///a", "a/b"] {
            assert_eq!(form(bad.as_bytes()), Err(FramingViolation::RequestTarget), "{bad}");
        }
        assert_eq!(form(b"/\x80"), Err(FramingViolation::RequestTarget), "no UTF-8");
    }
}
