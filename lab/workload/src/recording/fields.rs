//! Fields of a line with spaces or tabs between, some of them in quotes.

/// Takes the next field of `rest`; `None` at its end.
///
/// A field that begins with a quote ends at the next quote that is neither escaped by a backslash nor doubled
/// and has a separator or the end of the line behind it, so quotes within that a server forgot to escape are
/// part of it. A quote without such a counterpart is an ordinary character.
pub(super) fn next_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    if let Some(quoted) = rest.strip_prefix(b"\"")
        && let Some(end) = closing_quote(quoted)
    {
        *rest = quoted.get(end + 2..).unwrap_or_default();
        return Some(&quoted[..end]);
    }
    let end = rest.iter().position(is_separator).unwrap_or(rest.len());
    let field = &rest[..end];
    *rest = rest.get(end + 1..).unwrap_or_default();
    Some(field)
}

fn closing_quote(quoted: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < quoted.len() {
        match quoted[at] {
            b'\\' => at += 1,
            b'"' if quoted.get(at + 1) == Some(&b'"') => at += 1,
            b'"' if quoted.get(at + 1).is_none_or(is_separator) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_quoted_fields() {
        let check = |line: &str, wanted: &[&str]| {
            let mut rest = line.as_bytes();
            let fields: Vec<_> = std::iter::from_fn(|| next_field(&mut rest)).collect();
            assert_eq!(fields, wanted.iter().map(|field| field.as_bytes()).collect::<Vec<_>>(), "{line}");
        };
        check("", &[]);
        check("a - b\tc", &["a", "-", "b", "c"]);
        check(r#"a "b c" d"#, &["a", "b c", "d"]);
        check(r#""" "x""#, &["", "x"]);
        check(r#""a \" b" "c\\" d"#, &[r#"a \" b"#, r"c\\", "d"]);
        check(r#""say ""hello"" twice" d"#, &[r#"say ""hello"" twice"#, "d"]);
        check(r#""old"unescaped" d"#, &[r#"old"unescaped"#, "d"]);
        check(r#""never closed"#, &["\"never", "closed"]);
        check("a  b", &["a", "", "b"]);
    }
}
