//! Requests that a stored response answers: those that agree in the fields that `Vary` names (RFC 9111 §4.1).

use crate::directives::contains_token;
use crate::weighted::{Kept, Weighted};
use flashweir_http1::head::FieldsView;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, COOKIE, FORWARDED, HOST, TE, VARY, VIA,
};
use http::{HeaderMap, HeaderName};

/// The fields that select a response, with what its own request had in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection(Box<[Selected]>);

/// A field's name and what the request had in it.
type Selected = (HeaderName, Wanted);

/// Value of a field in the request of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// It had no such field.
    Absent,
    /// Compared byte by byte: its meaning is not known here.
    Bytes(Box<[u8]>),
    /// Compared by its meaning.
    List(Kept),
}

/// Reason for which there is no such selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unselectable {
    /// `Vary: *`, a field that this gateway writes itself (what a client writes in it is not what the origin
    /// saw), or something that is no name of a field.
    Vary,
    /// It depends on a cookie that its request had.
    Cookie,
}

/// Fields that the gateway writes or removes before the origin sees the request, beside `X-Forwarded-*`.
const REWRITTEN: [HeaderName; 4] = [FORWARDED, VIA, CONNECTION, TE];
/// More fields than this are no selection that two requests will share.
const FIELDS_MAX: usize = 16;

impl Selection {
    /// Of a response to a request with these fields.
    pub(crate) fn of<'a>(
        request: impl Into<FieldsView<'a>>,
        response: &HeaderMap,
    ) -> Result<Self, Unselectable> {
        let request = request.into();
        let mut names: Vec<HeaderName> = Vec::new();
        for line in response.get_all(VARY) {
            for name in line.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                if name.is_empty() {
                    continue;
                }
                let name = HeaderName::from_bytes(name).map_err(|_| Unselectable::Vary)?;
                if name == "*" || REWRITTEN.contains(&name) || name.as_str().starts_with("x-forwarded-") {
                    return Err(Unselectable::Vary);
                }
                // The host is a part of the key, byte by byte.
                if name != HOST && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        // An encoded body is for those who asked for it, whether or not the origin says so.
        if response.contains_key(CONTENT_ENCODING) && !names.contains(&ACCEPT_ENCODING) {
            names.push(ACCEPT_ENCODING);
        }
        if names.len() > FIELDS_MAX {
            return Err(Unselectable::Vary);
        }
        let is_personal = |name: &HeaderName| *name == COOKIE || *name == AUTHORIZATION;
        if names.iter().any(|name| is_personal(name) && has(request, name)) {
            return Err(Unselectable::Cookie);
        }
        Ok(Self(names.into_iter().map(|name| (name.clone(), Wanted::of(request, &name))).collect()))
    }

    /// Returns whether this request selects the response.
    pub(crate) fn takes<'a>(&self, request: impl Into<FieldsView<'a>>) -> bool {
        let request = request.into();
        self.0.iter().all(|(name, wanted)| wanted.is_in(request, name))
    }

    /// Returns whether the field selects the response.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(selecting, _)| name.eq_ignore_ascii_case(selecting.as_str().as_bytes()))
    }

    pub(crate) fn bytes(&self) -> usize {
        let of_one = |(_, wanted): &Selected| match wanted {
            Wanted::Absent => 0,
            Wanted::Bytes(bytes) => bytes.len(),
            Wanted::List(list) => list.iter().map(|element| size_of_val(element) + element.0.len()).sum(),
        };
        self.0.iter().map(|field| size_of_val(field) + of_one(field)).sum()
    }
}

/// Returns whether a response varies by a field of this name.
pub(crate) fn names(response: &HeaderMap, name: &[u8]) -> bool {
    response.get_all(VARY).iter().any(|line| contains_token(line.as_bytes(), name))
}

fn has(request: FieldsView<'_>, name: &HeaderName) -> bool {
    request.all_named(name).next().is_some()
}

/// The lines of a field in one, as a list may be joined (RFC 9110 §5.3); none where there is no such field.
fn value(request: FieldsView<'_>, name: &HeaderName) -> Option<Box<[u8]>> {
    let mut lines = request.all_named(name).map(<[u8]>::trim_ascii);
    let mut joined = lines.next()?.to_vec();
    for line in lines {
        joined.extend_from_slice(JOINED_BY);
        joined.extend_from_slice(line);
    }
    Some(joined.into())
}

const JOINED_BY: &[u8] = b", ";

impl Wanted {
    fn of(request: FieldsView<'_>, name: &HeaderName) -> Self {
        let Some(bytes) = value(request, name) else { return Self::Absent };
        match Weighted::read(name, &bytes).map(Weighted::to_kept) {
            Some(list) => Self::List(list),
            None => Self::Bytes(bytes),
        }
    }

    /// Returns whether the request has the same in this field. Without an allocation for the usual field of
    /// one line.
    fn is_in(&self, request: FieldsView<'_>, name: &HeaderName) -> bool {
        let mut lines = request.all_named(name);
        match (lines.next(), lines.next()) {
            (None, _) => *self == Self::Absent,
            (Some(line), None) => self.is(name, line.trim_ascii()),
            (Some(_), Some(_)) => value(request, name).is_some_and(|value| self.is(name, &value)),
        }
    }

    fn is(&self, name: &HeaderName, value: &[u8]) -> bool {
        match self {
            Self::Absent => false,
            Self::Bytes(bytes) => **bytes == *value,
            Self::List(list) => Weighted::read(name, value).is_some_and(|value| value.is(list)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::{ACCEPT, ACCEPT_LANGUAGE};

    fn fields(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(name, HeaderValue::from_static(value));
        }
        fields
    }

    #[test]
    fn requests_that_agree_in_the_named_fields_select_it() {
        let request = fields(&[(ACCEPT_LANGUAGE, "de"), (ACCEPT, "a"), (ACCEPT, "b")]);
        let response = fields(&[(VARY, "accept-language, Accept"), (VARY, "ACCEPT-ENCODING,")]);
        let selection = Selection::of(&request, &response).expect("a selection");
        assert!(selection.takes(&request));
        assert!(selection.takes(&fields(&[(ACCEPT, " a, b"), (ACCEPT_LANGUAGE, "de ")])));
        for other in [
            &[(ACCEPT_LANGUAGE, "de")][..],
            &[(ACCEPT_LANGUAGE, "en"), (ACCEPT, "a, b")],
            &[(ACCEPT_LANGUAGE, "de"), (ACCEPT, "a, b"), (ACCEPT_ENCODING, "gzip")],
            &[(ACCEPT_LANGUAGE, "de"), (ACCEPT, "a, b"), (ACCEPT_ENCODING, "")],
        ] {
            assert!(!selection.takes(&fields(other)), "{other:?}");
        }
    }

    /// RFC 9111 §4.1: spaces, case and order that mean nothing make no variants.
    #[test]
    fn a_field_of_one_meaning_is_one_variant_however_it_is_written() {
        let by_coding = fields(&[(VARY, "Accept-Encoding")]);
        let of =
            |lines: &[(HeaderName, &'static str)]| Selection::of(&fields(lines), &by_coding).expect("one");
        let selection = of(&[(ACCEPT_ENCODING, "gzip, br")]);
        for lines in [
            &[(ACCEPT_ENCODING, "gzip,br")][..],
            &[(ACCEPT_ENCODING, "BR , gzip")],
            &[(ACCEPT_ENCODING, "gzip"), (ACCEPT_ENCODING, "br;q=1")],
        ] {
            assert!(selection.takes(&fields(lines)), "{lines:?}");
            assert_eq!(of(lines), selection, "the later replaces the earlier: {lines:?}");
        }
        assert!(of(&[(ACCEPT_ENCODING, "gzip")]).takes(&fields(&[(ACCEPT_ENCODING, "GZIP")])));
        // Neither is a list: only the same bytes select it.
        let unreadable = of(&[(ACCEPT_ENCODING, "gzip br")]);
        assert!(unreadable.takes(&fields(&[(ACCEPT_ENCODING, "gzip br")])));
        assert!(!unreadable.takes(&fields(&[(ACCEPT_ENCODING, "GZIP br")])));
        assert!(
            !of(&[]).takes(&fields(&[(ACCEPT_ENCODING, "")])),
            "no field allows any coding, an empty one none"
        );
    }

    #[test]
    fn an_encoded_body_is_only_for_those_who_asked_for_it() {
        let response = fields(&[(CONTENT_ENCODING, "gzip")]);
        let selection = Selection::of(&fields(&[(ACCEPT_ENCODING, "gzip")]), &response).expect("a selection");
        assert!(!selection.takes(&HeaderMap::new()));
        assert!(selection.takes(&fields(&[(ACCEPT_ENCODING, "gzip")])));
    }

    #[test]
    fn what_no_two_requests_share_selects_nothing() {
        for vary in ["*", "accept, *", "X-Forwarded-For", "forwarded", "Via", "a b", "\u{e4}"] {
            let mut response = HeaderMap::new();
            response.append(VARY, HeaderValue::from_bytes(vary.as_bytes()).expect("a value"));
            assert_eq!(Selection::of(&HeaderMap::new(), &response), Err(Unselectable::Vary), "{vary}");
        }
        let by_cookie = fields(&[(VARY, "Cookie")]);
        assert_eq!(Selection::of(&fields(&[(COOKIE, "a=1")]), &by_cookie), Err(Unselectable::Cookie));
        let of_nobody = Selection::of(&HeaderMap::new(), &by_cookie).expect("a selection");
        assert!(of_nobody.takes(&HeaderMap::new()) && !of_nobody.takes(&fields(&[(COOKIE, "a=1")])));
    }
}
