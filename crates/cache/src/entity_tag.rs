//! Entity tags (RFC 9110 §8.8.3) and lists of them.

/// The tags of a list, each with its quotes and its `W/`; ends at what is none.
pub(crate) fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    core::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !b", \t".contains(byte))?;
        let text = &rest[start..];
        let opening = if text.starts_with(b"W/") { 2 } else { 0 };
        if text.get(opening) != Some(&b'"') {
            return None;
        }
        let inside = &text[opening + 1..];
        let length = opening + 2 + inside.iter().position(|&byte| byte == b'"')?;
        rest = &text[length..];
        Some(&text[..length])
    })
}

/// Weak comparison (§8.8.3.2).
pub(crate) fn is_same_weak(one: &[u8], other: &[u8]) -> bool {
    let opaque = |tag: &'_ [u8]| tag.strip_prefix(b"W/").map_or(tag.len(), <[u8]>::len);
    one[one.len() - opaque(one)..] == other[other.len() - opaque(other)..]
}

/// Strong comparison: neither is weak.
pub(crate) fn is_same_strong(one: &[u8], other: &[u8]) -> bool {
    one == other && one.starts_with(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_outside_of_quotes() {
        let all = |list: &'static str| tags(list.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("\"a\", W/\"b,c\" ,\"\""), [&b"\"a\""[..], b"W/\"b,c\"", b"\"\""]);
        assert_eq!(all("\"a\", b, \"c\""), [&b"\"a\""[..]]);
        assert!(all("").is_empty() && all("*").is_empty() && all("\"a").is_empty());
    }

    #[test]
    fn weak_and_strong_comparison_as_in_the_table_of_the_standard() {
        for (one, other, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(is_same_strong(one.as_bytes(), other.as_bytes()), strong, "{one} {other}");
            assert_eq!(is_same_weak(one.as_bytes(), other.as_bytes()), weak, "{one} {other}");
        }
    }
}
