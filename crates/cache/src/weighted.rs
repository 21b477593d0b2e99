//! Lists of tokens with weights (`gzip, br;q=0.5`; RFC 9110 §12.4.2), read so that two lists of one meaning
//! are equal.
//!
//! RFC 9111 §4.1 lets a cache compare the fields that `Vary` names by their meaning where the field's
//! specification gives it:
//!
//! | field | case | spaces | weights | order |
//! |---|---|---|---|---|
//! | `Accept-Encoding` (§12.5.3) | ignored | ignored | `q=1` is none, `q=0.50` is `q=0.5` | ignored; `x-gzip` is `gzip` (§8.4.1) |
//! | `Accept-Language` (§12.5.4) | ignored | ignored | the same | counts: some origins prefer what comes first |
//!
//! Values that cannot be read are compared byte by byte, like every other field.

use crate::directives::is_token;
use http::HeaderName;
use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};

/// Elements of a list that is compared by its meaning; browsers send five or six. Longer lists are compared
/// byte by byte.
const ELEMENTS_MAX: usize = 16;
/// Weight of an element that names none, in thousandths.
const WEIGHT_MAX: u16 = 1_000;

/// A list as it is kept with a stored response: tokens in lower case, with their weights in thousandths.
pub(crate) type Kept = Box<[(Box<[u8]>, u16)]>;

/// A list of a request. Reading it allocates nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighted<'a> {
    elements: [(&'a [u8], u16); ELEMENTS_MAX],
    count: usize,
}

impl<'a> Weighted<'a> {
    /// The list of a field's value; none if the field is no such list, or the value cannot be read.
    pub(crate) fn read(name: &HeaderName, value: &'a [u8]) -> Option<Self> {
        match *name {
            ACCEPT_ENCODING => Self::parse(value)?.in_any_order(),
            ACCEPT_LANGUAGE => Self::parse(value),
            _ => None,
        }
    }

    fn parse(value: &'a [u8]) -> Option<Self> {
        let mut list = Self { elements: [(b"".as_slice(), 0); ELEMENTS_MAX], count: 0 };
        let elements = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        // Empty elements are ignored (RFC 9110 §5.6.1.2).
        for element in elements.filter(|element| !element.is_empty()) {
            *list.elements.get_mut(list.count)? = read_element(element)?;
            list.count += 1;
        }
        Some(list)
    }

    /// Sorted, each token once; none if a token has two weights.
    fn in_any_order(mut self) -> Option<Self> {
        let elements = &mut self.elements[..self.count];
        for element in elements.iter_mut() {
            element.0 = usual_coding(element.0);
        }
        elements.sort_unstable_by(|(one, _), (other, _)| lower(one).cmp(lower(other)));
        let mut count = 0;
        for index in 0..self.count {
            let (token, weight) = self.elements[index];
            match self.elements[..count].last() {
                Some((before, known)) if before.eq_ignore_ascii_case(token) => {
                    if *known != weight {
                        return None;
                    }
                }
                _ => {
                    self.elements[count] = (token, weight);
                    count += 1;
                }
            }
        }
        Some(Self { count, ..self })
    }

    /// To be kept with a response.
    pub(crate) fn to_kept(self) -> Kept {
        let elements = self.elements[..self.count].iter();
        elements.map(|(token, weight)| (token.to_ascii_lowercase().into(), *weight)).collect()
    }

    /// Returns whether it means the same as one that was kept.
    pub(crate) fn is(&self, kept: &[(Box<[u8]>, u16)]) -> bool {
        let elements = &self.elements[..self.count];
        elements.len() == kept.len()
            && elements.iter().zip(kept).all(|((token, weight), (kept, kept_weight))| {
                weight == kept_weight && token.eq_ignore_ascii_case(kept)
            })
    }
}

/// A token and its weight.
fn read_element(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let token = parts.next().filter(|token| !token.is_empty() && token.iter().all(|&byte| is_token(byte)))?;
    let weight = match (parts.next(), parts.next()) {
        (None, _) => WEIGHT_MAX,
        (Some(weight), None) => read_weight(weight)?,
        (Some(_), Some(_)) => return None,
    };
    Some((token, weight))
}

/// `q=0.5` as 500: at most three digits behind the point, and nothing above 1 (RFC 9110 §12.4.2).
fn read_weight(weight: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = weight else { return None };
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0') * WEIGHT_MAX;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        thousandths += u16::from(char::from(*digit).to_digit(10)? as u8) * unit;
    }
    Some(thousandths).filter(|&thousandths| thousandths <= WEIGHT_MAX)
}

/// The name of a coding without its old prefix (RFC 9110 §8.4.1).
fn usual_coding(token: &[u8]) -> &[u8] {
    let old = [b"x-gzip".as_slice(), b"x-compress"];
    if old.iter().any(|old| token.eq_ignore_ascii_case(old)) { &token[2..] } else { token }
}

fn lower(token: &[u8]) -> impl Iterator<Item = u8> + '_ {
    token.iter().map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_same(name: &HeaderName, one: &str, other: &str) -> bool {
        let kept = Weighted::read(name, one.as_bytes()).map(Weighted::to_kept);
        let read = Weighted::read(name, other.as_bytes());
        matches!((kept, read), (Some(kept), Some(read)) if read.is(&kept))
    }

    /// RFC 9110 §12.5.3 and §8.4.1, RFC 9111 §4.1.
    #[test]
    fn codings_are_compared_without_case_spaces_and_order() {
        for (one, other) in [
            ("gzip, br", "gzip,br"),
            ("gzip, br", "br,\tgzip"),
            ("gzip", "GZIP"),
            ("gzip", "x-gzip"),
            ("gzip", "gzip;q=1.000"),
            ("gzip;q=0.5", "gzip ; Q=0.50"),
            ("gzip,,br,", "gzip, br"),
            ("gzip, gzip", "gzip"),
            ("", " , "),
            ("*;q=0, identity", "identity,*;q=0.0"),
        ] {
            assert!(is_same(&ACCEPT_ENCODING, one, other), "{one} | {other}");
        }
        for (one, other) in [
            ("gzip, br", "gzip"),
            ("gzip", ""),
            ("gzip;q=0.5", "gzip"),
            ("gzip;q=0", "gzip;q=0.001"),
            ("gzip, br;q=0.5", "br, gzip;q=0.5"),
        ] {
            assert!(!is_same(&ACCEPT_ENCODING, one, other), "{one} | {other}");
        }
    }

    /// RFC 9110 §12.5.4: recipients may take the order for a preference.
    #[test]
    fn languages_are_compared_without_case_and_spaces_and_in_their_order() {
        for other in ["en,de", " en ,   de", "eN, De", "en;q=1,de"] {
            assert!(is_same(&ACCEPT_LANGUAGE, "en, de", other), "{other}");
        }
        for other in ["de, en", "en", "en, de, en", "en, de;q=0.9"] {
            assert!(!is_same(&ACCEPT_LANGUAGE, "en, de", other), "{other}");
        }
    }

    #[test]
    fn other_fields_and_what_cannot_be_read_are_no_such_lists() {
        assert!(Weighted::read(&http::header::ACCEPT, b"a").is_none());
        for value in [
            "gzip br",
            "gzip;level=1",
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=.5",
            "gzip;q=0.5x",
            "gzip;q=0.5;q=0.5",
            "gzip;q=0.5, gzip",
            "\"gzip\"",
            "g\u{e4}",
            "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
        ] {
            assert!(Weighted::read(&ACCEPT_ENCODING, value.as_bytes()).is_none(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_a_list_is_itself(value in "[gzipbrGZ ,;q=.01*x-]{0,40}") {
            for name in [ACCEPT_ENCODING, ACCEPT_LANGUAGE] {
                if Weighted::read(&name, value.as_bytes()).is_some() {
                    prop_assert!(is_same(&name, &value, &value));
                }
            }
        }
    }
}
