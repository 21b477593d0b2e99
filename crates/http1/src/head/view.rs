//! A request's head as decisions see it: read by this crate in HTTP/1.1, by a library with the types of the
//! crate `http` in HTTP/2.

use super::{Field, Fields, KnownField, RequestHead, TargetForm};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

/// View of a request's head. Copied freely: it is a reference.
#[derive(Clone, Copy, Debug)]
pub enum RequestView<'a> {
    /// Places in the bytes of the head.
    Spans(RequestHead<'a>),
    /// A head of the crate `http`.
    Parts(&'a Parts),
}

/// View of the fields of a head. Names are compared in any case; values are without the white space around
/// them.
#[derive(Clone, Copy, Debug)]
pub enum FieldsView<'a> {
    /// Places in the bytes of the head.
    Spans(Fields<'a>),
    /// Fields of the crate `http`.
    Map(&'a HeaderMap),
}

/// One of the two iterators behind a view.
enum Either<S, M> {
    Spans(S),
    Map(M),
}

impl<T, S: Iterator<Item = T>, M: Iterator<Item = T>> Iterator for Either<S, M> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match self {
            Self::Spans(spans) => spans.next(),
            Self::Map(map) => map.next(),
        }
    }
}

impl<'a> From<&'a Parts> for RequestView<'a> {
    #[inline]
    fn from(parts: &'a Parts) -> Self {
        Self::Parts(parts)
    }
}

impl<'a> From<RequestHead<'a>> for RequestView<'a> {
    #[inline]
    fn from(head: RequestHead<'a>) -> Self {
        Self::Spans(head)
    }
}

impl<'a> From<&RequestHead<'a>> for RequestView<'a> {
    #[inline]
    fn from(head: &RequestHead<'a>) -> Self {
        Self::Spans(*head)
    }
}

impl<'a> From<&'a HeaderMap> for FieldsView<'a> {
    #[inline]
    fn from(fields: &'a HeaderMap) -> Self {
        Self::Map(fields)
    }
}

impl<'a> From<Fields<'a>> for FieldsView<'a> {
    #[inline]
    fn from(fields: Fields<'a>) -> Self {
        Self::Spans(fields)
    }
}

impl<'a> RequestView<'a> {
    /// Method as it was sent.
    #[must_use]
    #[inline]
    pub fn method(self) -> &'a [u8] {
        match self {
            Self::Spans(head) => head.method_name(),
            Self::Parts(parts) => parts.method.as_str().as_bytes(),
        }
    }

    /// Path and query of the target; empty where it is an authority.
    #[must_use]
    #[inline]
    pub fn path_and_query(self) -> &'a [u8] {
        match self {
            Self::Spans(head) => match head.path_and_query() {
                b"" if head.target_form() != TargetForm::Authority => b"/",
                path_and_query => path_and_query,
            },
            Self::Parts(parts) => {
                parts.uri.path_and_query().map_or(&[], |path_and_query| path_and_query.as_str().as_bytes())
            }
        }
    }

    /// Path of the target, without its query.
    #[must_use]
    #[inline]
    pub fn path(self) -> &'a [u8] {
        match self {
            Self::Spans(_) => split_query(self.path_and_query()).0,
            Self::Parts(parts) => parts.uri.path().as_bytes(),
        }
    }

    /// Query of the target, without the question mark.
    #[must_use]
    #[inline]
    pub fn query(self) -> Option<&'a [u8]> {
        match self {
            Self::Spans(_) => split_query(self.path_and_query()).1,
            Self::Parts(parts) => parts.uri.query().map(str::as_bytes),
        }
    }

    /// Authority that the target names: in HTTP/2, and in absolute-form.
    #[must_use]
    #[inline]
    pub fn target_authority(self) -> Option<&'a [u8]> {
        match self {
            Self::Spans(head) => head.target_authority(),
            Self::Parts(parts) => parts.uri.authority().map(|authority| authority.as_str().as_bytes()),
        }
    }

    /// Fields of the head.
    #[must_use]
    #[inline]
    pub fn fields(self) -> FieldsView<'a> {
        match self {
            Self::Spans(head) => FieldsView::Spans(head.fields()),
            Self::Parts(parts) => FieldsView::Map(&parts.headers),
        }
    }
}

impl<'a> FieldsView<'a> {
    /// Value of the first field of this name.
    #[must_use]
    #[inline]
    pub fn get(self, known: KnownField) -> Option<&'a [u8]> {
        match self {
            Self::Spans(fields) => fields.get(known),
            Self::Map(fields) => Some(fields.get(known.http_name()?)?.as_bytes()),
        }
    }

    /// Returns whether there is a field of this name.
    #[must_use]
    #[inline]
    pub fn has(self, known: KnownField) -> bool {
        self.get(known).is_some()
    }

    /// Values of all fields of this name, in their order.
    #[inline]
    pub fn all(self, known: KnownField) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        match self {
            Self::Spans(fields) => Either::Spans(fields.all(known)),
            Self::Map(fields) => {
                let values = known.http_name().into_iter().flat_map(|name| fields.get_all(name));
                Either::Map(values.map(|value| value.as_bytes()))
            }
        }
    }

    /// Values of all fields of a name that need not be known, in their order.
    #[inline]
    pub fn all_named(self, name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        match self {
            Self::Spans(fields) => {
                let named = fields.iter();
                let named =
                    named.filter(move |field| field.name.eq_ignore_ascii_case(name.as_str().as_bytes()));
                Either::Spans(named.map(|field| field.value))
            }
            Self::Map(fields) => Either::Map(fields.get_all(name).into_iter().map(|value| value.as_bytes())),
        }
    }

    /// All fields; those of one name in their order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        match self {
            Self::Spans(fields) => Either::Spans(fields.iter()),
            Self::Map(fields) => Either::Map(fields.iter().map(|(name, value)| {
                let name = name.as_str().as_bytes();
                Field { name, value: value.as_bytes(), known: KnownField::of(name), has_odd_name: false }
            })),
        }
    }
}

#[inline]
fn split_query(path_and_query: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', path_and_query) {
        Some(mark) => (&path_and_query[..mark], path_and_query.get(mark + 1..)),
        None => (path_and_query, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{HeadLimits, RequestReader};
    use http::Request;

    const LIMITS: HeadLimits = HeadLimits { bytes_max: 16_384, fields_max: 100 };

    /// Checks that both views of one head, written in lower case, say the same.
    fn check(method: &str, target: &str, fields: &[(&str, &str)]) {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let bytes = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n");
        let mut reader = RequestReader::new(LIMITS);
        reader.read(bytes.as_bytes()).expect("a good head").expect("a whole head");
        let head = reader.head(bytes.as_bytes()).expect("a whole head");
        let mut parts = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            parts = parts.header(*name, *value);
        }
        let (parts, ()) = parts.body(()).expect("a good request").into_parts();
        let (spans, parts) = (RequestView::from(head), RequestView::from(&parts));
        assert_eq!(spans.method(), parts.method(), "{bytes}");
        assert_eq!(spans.path(), parts.path(), "{bytes}");
        assert_eq!(spans.query(), parts.query(), "{bytes}");
        assert_eq!(spans.path_and_query(), parts.path_and_query(), "{bytes}");
        assert_eq!(spans.target_authority(), parts.target_authority(), "{bytes}");
        let (of_spans, of_parts) = (spans.fields(), parts.fields());
        for (name, _) in fields.iter().chain(&[("absent", ""), ("age", "")]) {
            let known = KnownField::of(name.as_bytes());
            if known.http_name().is_some() {
                assert_eq!(of_spans.get(known), of_parts.get(known), "{name} in {bytes}");
                assert!(of_spans.all(known).eq(of_parts.all(known)), "{name} in {bytes}");
            }
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            assert!(of_spans.all_named(&name).eq(of_parts.all_named(&name)), "{name} in {bytes}");
        }
        let sorted = |view: FieldsView<'_>| {
            let mut fields: Vec<_> = view.iter().map(|field| (field.name.to_vec(), field.known)).collect();
            fields.sort();
            fields
        };
        assert_eq!(sorted(of_spans), sorted(of_parts), "{bytes}");
    }

    #[test]
    fn both_kinds_of_head_are_seen_alike() {
        let browser = [
            ("host", "shop.example"),
            ("user-agent", "Mozilla/5.0"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("x-anything", "1"),
            ("x-anything", ""),
            ("sec-fetch-dest", "font"),
        ];
        for target in ["/", "/a", "/a?", "/a?b=c?d", "/?", "//a//b", "/%41"] {
            for method in ["GET", "POST", "HEAD", "PURGE"] {
                check(method, target, &browser);
            }
        }
        check("GET", "http://shop.example:8080/a?b", &browser);
        check("GET", "http://shop.example", &browser);
        check("OPTIONS", "*", &browser);
        check("CONNECT", "shop.example:443", &browser);
    }
}
