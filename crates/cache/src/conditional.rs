//! Conditional requests answered from the store (RFC 9110 §13, RFC 9111 §4.3.2), and those that ask whether
//! it is still right.

use crate::date;
use crate::entity_tag::{is_same_weak, tags};
use flashweir_http1::head::{FieldsView, KnownField};
use http::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

/// Returns whether the client has what the store has: its condition is false, and 304 answers it.
pub(crate) fn has_it<'a>(request: impl Into<FieldsView<'a>>, stored: &HeaderMap) -> bool {
    let request = request.into();
    let mut lists = request.all(KnownField::IfNoneMatch).peekable();
    if lists.peek().is_some() {
        let tag = stored.get(ETAG).map(HeaderValue::as_bytes);
        return lists.any(|list| {
            // `*` is true of any current representation (§13.1.2).
            list.trim_ascii() == b"*"
                || tag.is_some_and(|tag| tags(list).any(|other| is_same_weak(tag, other)))
        });
    }
    let since = request.get(KnownField::IfModifiedSince).and_then(date::parse);
    let modified = stored.get(LAST_MODIFIED).and_then(|value| date::parse(value.as_bytes()));
    matches!((since, modified), (Some(since), Some(modified)) if modified <= since)
}

/// Makes a request for the whole document out of a client's, with the conditions of a stored response in
/// place of the client's own, if there is one that can be validated (RFC 9111 §4.3.1). Whether there are any.
pub(crate) fn ask_whether_changed(request: &mut HeaderMap, stored: Option<&HeaderMap>) -> bool {
    request.remove(IF_NONE_MATCH);
    request.remove(IF_MODIFIED_SINCE);
    let Some(stored) = stored else { return false };
    let tag = stored.get(ETAG).cloned();
    let modified = stored.get(LAST_MODIFIED).filter(|value| date::parse(value.as_bytes()).is_some()).cloned();
    let has_any = tag.is_some() || modified.is_some();
    tag.into_iter().for_each(|tag| drop(request.insert(IF_NONE_MATCH, tag)));
    modified.into_iter().for_each(|modified| drop(request.insert(IF_MODIFIED_SINCE, modified)));
    has_any
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn fields(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    const EARLY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATE: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    #[test]
    fn a_tag_counts_before_a_date() {
        let stored = fields(&[(ETAG, "\"2\""), (LAST_MODIFIED, EARLY)]);
        for (request, expected) in [
            (&[][..], false),
            (&[(IF_NONE_MATCH, "\"1\", W/\"2\"")], true),
            (&[(IF_NONE_MATCH, "*")], true),
            (&[(IF_NONE_MATCH, "\"1\"")], false),
            (&[(IF_NONE_MATCH, "\"1\""), (IF_MODIFIED_SINCE, LATE)], false),
            (&[(IF_MODIFIED_SINCE, EARLY)], true),
            (&[(IF_MODIFIED_SINCE, LATE)], true),
            (&[(IF_MODIFIED_SINCE, "yesterday")], false),
        ] {
            assert_eq!(has_it(&fields(request), &stored), expected, "{request:?}");
        }
        assert!(!has_it(&fields(&[(IF_MODIFIED_SINCE, EARLY)]), &fields(&[(LAST_MODIFIED, LATE)])));
        assert!(!has_it(&fields(&[(IF_MODIFIED_SINCE, EARLY)]), &HeaderMap::new()), "no date, no comparison");
        assert!(!has_it(&fields(&[(IF_NONE_MATCH, "\"1\"")]), &HeaderMap::new()));
    }

    #[test]
    fn the_clients_condition_gives_way_to_the_stores() {
        let mut request = fields(&[(IF_NONE_MATCH, "\"client\""), (IF_MODIFIED_SINCE, LATE)]);
        assert!(!ask_whether_changed(&mut request, None));
        assert!(request.is_empty());
        let stored = fields(&[(ETAG, "W/\"2\""), (LAST_MODIFIED, EARLY)]);
        assert!(ask_whether_changed(&mut request, Some(&stored)));
        assert_eq!(request, fields(&[(IF_NONE_MATCH, "W/\"2\""), (IF_MODIFIED_SINCE, EARLY)]));
        assert!(!ask_whether_changed(&mut request, Some(&fields(&[(LAST_MODIFIED, "x")]))));
    }
}
