//! One range of bytes of a stored document (RFC 9110 §14).

use crate::entity_tag::is_same_strong;
use core::ops::Range;
use flashweir_http1::head::{FieldsView, KnownField};
use http::HeaderMap;
use http::header::ETAG;

/// Answer to a request for a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole: it asks for nothing else, for several parts at once, or for what cannot be read (§14.2 lets
    /// a server ignore it).
    Whole,
    /// These bytes.
    Bytes(Range<usize>),
    /// The document has no such bytes.
    None,
}

/// The part of a document of this length that a request asks for.
pub(crate) fn part<'a>(request: impl Into<FieldsView<'a>>, stored: &HeaderMap, length: usize) -> Part {
    let request = request.into();
    let mut lines = request.all(KnownField::Range);
    let (Some(line), None) = (lines.next(), lines.next()) else { return Part::Whole };
    // A date is no strong validator unless more is known of it (§13.1.5), so only tags count.
    let is_other = request
        .get(KnownField::IfRange)
        .is_some_and(|wanted| !stored.get(ETAG).is_some_and(|tag| is_same_strong(tag.as_bytes(), wanted)));
    if is_other { Part::Whole } else { one_range(line, length).unwrap_or(Part::Whole) }
}

fn one_range(line: &[u8], length: usize) -> Option<Part> {
    let (unit, set) = core::str::from_utf8(line).ok().filter(|line| line.is_ascii())?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let number = |text: &str| -> Option<usize> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number has are beyond the end of anything.
        is_number.then(|| text.parse().unwrap_or(usize::MAX))
    };
    let range = match (first.is_empty(), last.is_empty()) {
        (true, true) => return None,
        (true, false) => {
            let suffix = number(last)?;
            if suffix == 0 { length..length } else { length.saturating_sub(suffix)..length }
        }
        (false, true) => number(first)?..length,
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if range.start >= length { Part::None } else { Part::Bytes(range) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::{IF_RANGE, RANGE};
    use proptest::prelude::*;

    fn of(range: &str, length: usize) -> Part {
        let request = HeaderMap::from_iter([(RANGE, HeaderValue::from_str(range).expect("a value"))]);
        part(&request, &HeaderMap::new(), length)
    }

    #[test]
    fn the_forms_of_a_range() {
        for (range, expected) in [
            ("bytes=0-0", Part::Bytes(0..1)),
            ("bytes=2-", Part::Bytes(2..10)),
            ("Bytes = 2-3", Part::Bytes(2..4)),
            ("bytes=-3", Part::Bytes(7..10)),
            ("bytes=-30", Part::Bytes(0..10)),
            ("bytes=5-99999999999999999999999", Part::Bytes(5..10)),
            ("bytes=10-", Part::None),
            ("bytes=99999999999999999999999-", Part::None),
            ("bytes=-0", Part::None),
            ("bytes=3-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(of(range, 10), expected, "{range}");
        }
        assert_eq!(of("bytes=0-", 0), Part::None);
    }

    #[test]
    fn a_range_of_another_version_gets_the_whole() {
        let request = |tag| {
            HeaderMap::from_iter([
                (RANGE, HeaderValue::from_static("bytes=0-1")),
                (IF_RANGE, HeaderValue::from_static(tag)),
            ])
        };
        let stored = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"1\""))]);
        assert_eq!(part(&request("\"1\""), &stored, 10), Part::Bytes(0..2));
        for other in ["\"2\"", "W/\"1\"", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(part(&request(other), &stored, 10), Part::Whole, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_document(first in 0usize..40, last in 0usize..40, length in 0usize..30) {
            if let Part::Bytes(range) = of(&format!("bytes={first}-{last}"), length) {
                prop_assert!(range.start < range.end && range.end <= length);
                prop_assert_eq!(range.start, first);
            }
        }
    }
}
