//! `Cache-Control` of a response (RFC 9111 §5.2.2, RFC 5861), read so that doubt is never an allowance.
//!
//! Names are compared without regard to case, both forms of an argument are read (token and quoted string),
//! and a directive that is restricted to some fields (`private="x"`) is taken for the whole, as §5.2.2.4 and
//! §5.2.2.7 let caches do. A field that cannot be read to its end makes the whole answer
//! [doubtful](Directives::is_doubtful).

use core::time::Duration;
use flashweir_http1::head::{FieldsView, KnownField};
use http::{HeaderMap, HeaderValue, header::CACHE_CONTROL, header::PRAGMA};

/// The origin's instructions for storing its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache`, or `Pragma: no-cache` where there is no `Cache-Control`.
    pub no_cache: bool,
    /// `private`.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    /// `max-age`.
    pub max_age: Option<Duration>,
    /// `s-maxage`.
    pub s_maxage: Option<Duration>,
    /// `stale-while-revalidate`.
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`.
    pub stale_if_error: Option<Duration>,
    /// Something in it cannot be read.
    pub is_doubtful: bool,
    /// They are those of `CDN-Cache-Control` or `Surrogate-Control`: neither `Cache-Control` nor `Expires`
    /// counts.
    pub is_targeted: bool,
    /// `Cache-Control`, in whose place they are, forbids to share or to use stale responses: then a grace
    /// does not overrule it.
    pub is_general_restricted: bool,
}

/// Delta-seconds beyond this mean this (RFC 9111 §1.2.2).
pub(crate) const SECONDS_MAX: u64 = 1 << 31;

impl Directives {
    /// The directives of `Cache-Control`.
    pub(crate) fn of_cache_control(fields: &HeaderMap) -> Self {
        let mut all = Self::default();
        for line in fields.get_all(CACHE_CONTROL) {
            all.read_line(line);
        }
        if !fields.contains_key(CACHE_CONTROL) {
            let named = |line: &HeaderValue| contains_token(line.as_bytes(), b"no-cache");
            all.no_cache = fields.get_all(PRAGMA).iter().any(named);
        }
        all
    }

    /// Presence of `only-if-cached` and of `no-store` in a request.
    pub(crate) fn of_request(fields: FieldsView<'_>) -> (bool, bool) {
        let says = |name| fields.all(KnownField::CacheControl).any(|line| contains_token(line, name));
        (says(b"only-if-cached"), says(b"no-store"))
    }

    fn read_line(&mut self, line: &HeaderValue) {
        let mut elements = Elements(line.as_bytes());
        loop {
            match elements.next_element() {
                Ok(Some((name, argument))) => self.take(name, argument),
                Ok(None) => return,
                Err(Unreadable) => {
                    self.is_doubtful = true;
                    return;
                }
            }
        }
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("no-store") {
            self.no_store = true;
        } else if is("no-cache") {
            self.no_cache = true;
        } else if is("private") {
            self.private = true;
        } else if is("public") {
            self.public = true;
        } else if is("must-revalidate") || is("proxy-revalidate") {
            self.must_revalidate = true;
        } else if is("max-age") {
            put(&mut self.max_age, argument);
        } else if is("s-maxage") {
            put(&mut self.s_maxage, argument);
        } else if is("stale-while-revalidate") {
            put(&mut self.stale_while_revalidate, argument);
        } else if is("stale-if-error") {
            put(&mut self.stale_if_error, argument);
        }
        // Others are unknown and to be ignored (§5.2.3).
    }
}

/// A time that is no number, or is given twice with different values, is none: the response counts as stale
/// (RFC 9111 §4.2.1).
pub(crate) fn put(place: &mut Option<Duration>, argument: Option<&[u8]>) {
    let seconds = argument.and_then(seconds).unwrap_or(Duration::ZERO);
    *place = match *place {
        Some(before) if before != seconds => Some(Duration::ZERO),
        _ => Some(seconds),
    };
}

/// Delta-seconds: digits and nothing else; too many for a number mean "for ever".
pub(crate) fn seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = core::str::from_utf8(text).ok()?.parse::<u64>().unwrap_or(SECONDS_MAX);
    Some(Duration::from_secs(number.min(SECONDS_MAX)))
}

/// A list of directives, some with an argument.
struct Elements<'a>(&'a [u8]);

struct Unreadable;

impl<'a> Elements<'a> {
    /// The next directive's name and argument (without its quotes).
    #[expect(
        clippy::type_complexity,
        reason = "a name and its argument, if there is a next element and it can be read"
    )]
    fn next_element(&mut self) -> Result<Option<(&'a [u8], Option<&'a [u8]>)>, Unreadable> {
        self.skip(b", \t");
        if self.0.is_empty() {
            return Ok(None);
        }
        let name = self.take_while(is_token);
        if name.is_empty() {
            return Err(Unreadable);
        }
        self.skip(b" \t");
        if self.0.first() != Some(&b'=') {
            return self.end().map(|()| Some((name, None)));
        }
        self.0 = &self.0[1..];
        self.skip(b" \t");
        let argument = if self.0.first() == Some(&b'"') { self.quoted()? } else { self.take_while(is_token) };
        self.skip(b" \t");
        self.end().map(|()| Some((name, Some(argument))))
    }

    /// An element ends with the line or with a comma.
    fn end(&self) -> Result<(), Unreadable> {
        match self.0.first() {
            None | Some(b',') => Ok(()),
            Some(_) => Err(Unreadable),
        }
    }

    /// A quoted string; escapes stay in it, for no argument that is read has any.
    fn quoted(&mut self) -> Result<&'a [u8], Unreadable> {
        let inside = &self.0[1..];
        let mut escaped = false;
        for (index, &byte) in inside.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.0 = &inside[index + 1..];
                    return Ok(&inside[..index]);
                }
                _ => {}
            }
        }
        Err(Unreadable)
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }

    fn take_while(&mut self, is: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !is(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
}

/// RFC 9110 §5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether the list names this token, in any case; for lists in which only that matters.
pub(crate) fn contains_token(list: &[u8], token: &[u8]) -> bool {
    list.split(|&byte| byte == b',').any(|element| element.trim_ascii().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(lines: &[&str]) -> Directives {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(CACHE_CONTROL, HeaderValue::from_bytes(line.as_bytes()).expect("a value"));
        }
        Directives::of_response(&fields)
    }

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn names_are_read_in_any_case_and_from_all_lines() {
        let directives = of(&["Max-Age=60, PUBLIC", "S-MaxAge=\"60\" , Must-Revalidate"]);
        assert_eq!((directives.max_age, directives.s_maxage), (MINUTE, MINUTE));
        assert!(directives.public && directives.must_revalidate && !directives.is_doubtful);
        assert!(of(&["PrIvAtE"]).private && of(&["No-Store"]).no_store && of(&["NO-CACHE"]).no_cache);
    }

    #[test]
    fn a_directive_for_some_fields_is_taken_for_all() {
        let directives = of(&["private=\"set-cookie, x-name\", no-cache=\"a\", max-age=60"]);
        assert!(directives.private && directives.no_cache && !directives.is_doubtful);
        assert_eq!(directives.max_age, MINUTE);
    }

    #[test]
    fn words_inside_a_quoted_string_are_no_directives() {
        let directives = of(&["ext=\"a, max-age=60, \\\", public\", max-age=0"]);
        assert_eq!((directives.max_age, directives.public), (Some(Duration::ZERO), false));
    }

    #[test]
    fn times_that_conflict_or_are_none_are_zero() {
        for line in
            ["max-age=60, max-age=61", "max-age=-1", "max-age", "max-age=", "max-age=1.5", "max-age=6x"]
        {
            assert_eq!(of(&[line]).max_age, Some(Duration::ZERO), "{line}");
        }
        assert_eq!(of(&["max-age=60", "max-age=60"]).max_age, MINUTE);
        let for_ever = Some(Duration::from_secs(SECONDS_MAX));
        assert_eq!(of(&["max-age=99999999999999999999999"]).max_age, for_ever);
    }

    #[test]
    fn what_cannot_be_read_is_doubtful() {
        for line in ["max-age=60 private", "\"", "x=\"", "=60", "max-age=60; public", "ex\u{e4}"] {
            assert!(of(&[line]).is_doubtful, "{line}");
        }
        assert!(!of(&["", " , ,", "unknown=\"\u{e4}\", other"]).is_doubtful);
        assert!(of(&["x=\"\u{e4}\", private"]).private, "bytes beyond ASCII do not hide what follows");
    }

    #[test]
    fn pragma_counts_where_there_is_nothing_else() {
        let mut fields = HeaderMap::new();
        fields.insert(PRAGMA, HeaderValue::from_static("No-Cache"));
        assert!(Directives::of_response(&fields).no_cache);
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        assert!(!Directives::of_response(&fields).no_cache);
    }

    proptest! {
        /// Goal: no bytes before or behind it hide `private`, unless the whole is doubtful.
        #[test]
        fn private_is_found_or_the_line_is_doubtful(before in "[ -~]{0,30}", behind in "[ -~]{0,30}") {
            // A quote that stays open makes the rest a string.
            let quotes = before.matches('"').count();
            let line = format!("{before}, Private, {behind}");
            let directives = of(&[&line]);
            prop_assume!(quotes == 0);
            prop_assert!(directives.private || directives.is_doubtful, "{}", line);
        }

        #[test]
        fn nothing_panics(line in proptest::collection::vec(32u8..=255, 0..60)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let mut all = Directives::default();
                all.read_line(&value);
            }
        }
    }
}
