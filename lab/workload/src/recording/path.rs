//! Paths as a log has them, made such that they can be sent.

use crate::recording::entry::Escapes;
use crate::recording::problem::Defect;
use flashweir_core::limits::RECORDED_PATH_BYTES;

/// Appends path and query to `name`, percent-encoding every byte that RFC 3986 allows in neither; what was
/// encoded stays so. Of an absolute URL (a client that took the server for its proxy) host and scheme are
/// left out. The escapes web servers write into their logs are undone first.
pub(super) fn push_path(target: &[u8], escapes: Escapes, name: &mut String) -> Result<(), Defect> {
    let path = without_origin(target);
    let start = name.len();
    match path.first() {
        Some(b'/') => {}
        None | Some(b'?') if path.len() < target.len() => name.push('/'),
        _ => return Err(Defect::NotAPath),
    }
    push_text(path, escapes, start, name)
}

/// The same of a path and a query that the log has in two columns, so that a `?` in the path is a part of it.
pub(super) fn push_path_and_query(
    path: &[u8],
    query: Option<&[u8]>,
    name: &mut String,
) -> Result<(), Defect> {
    let start = name.len();
    if path.first() != Some(&b'/') {
        return Err(Defect::NotAPath);
    }
    for (count, part) in path.split(|byte| *byte == b'?').enumerate() {
        if count > 0 {
            name.push_str("%3F");
        }
        push_text(part, Escapes::None, start, name)?;
    }
    if let Some(query) = query {
        name.push('?');
        push_text(query, Escapes::None, start, name)?;
    }
    Ok(())
}

/// Appends bytes; the path that began at `start` may not become too long.
fn push_text(text: &[u8], escapes: Escapes, start: usize, name: &mut String) -> Result<(), Defect> {
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, escapes) {
            (b'\\', Escapes::Backslash) => unescape(after),
            (b'#', Escapes::Hash) => hex_byte(after).unwrap_or((first, after)),
            _ => (first, after),
        };
        push_byte(byte, name);
        rest = after;
        if name.len() - start > RECORDED_PATH_BYTES {
            return Err(Defect::PathTooLong);
        }
    }
    Ok(())
}

/// The part after scheme and host, if there are any.
fn without_origin(target: &[u8]) -> &[u8] {
    let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    });
    after_scheme.map_or(target, |rest| {
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        &rest[end..]
    })
}

/// The byte that an escape stands for, given what follows its backslash. A backslash that begins no escape is
/// itself: not every server escapes.
fn unescape(after: &[u8]) -> (u8, &[u8]) {
    match after {
        // nginx writes `\u00` before the digits where its log has `escape=json`.
        [b'u', b'0', b'0', rest @ ..] | [b'x', rest @ ..] if let Some(escaped) = hex_byte(rest) => escaped,
        [byte @ (b'"' | b'\\'), rest @ ..] => (*byte, rest),
        [b't', rest @ ..] => (b'\t', rest),
        [b'n', rest @ ..] => (b'\n', rest),
        [b'r', rest @ ..] => (b'\r', rest),
        _ => (b'\\', after),
    }
}

/// The byte that two hexadecimal digits stand for, and what follows them.
fn hex_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let [high, low, rest @ ..] = text else { return None };
    Some((hex(*high)? << 4 | hex(*low)?, rest))
}

fn push_byte(byte: u8, name: &mut String) {
    // `%` begins what is encoded already; the brackets are common in queries and every server takes them.
    if byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:@?[]".contains(&byte) {
        name.push(char::from(byte));
    } else {
        name.push('%');
        for half in [byte >> 4, byte & 0xf] {
            name.push(char::from(b"0123456789ABCDEF"[usize::from(half)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(target: &[u8], escapes: Escapes) -> Result<String, Defect> {
        let mut name = "GET ".to_owned();
        push_path(target, escapes, &mut name).map(|()| name["GET ".len()..].to_owned())
    }

    fn check(target: &[u8], wanted: &str) {
        assert_eq!(path(target, Escapes::Backslash).as_deref(), Ok(wanted));
    }

    #[test]
    fn ordinary_paths_stay_as_they_are() {
        for same in ["/", "/a/b.html", "/q?x=1&y[]=2", "/%7Euser/%zz", "//double", "/a:b@c;d=e,f'(g)*!$~-_."]
        {
            check(same.as_bytes(), same);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_encoded() {
        check(b"/a b\"c<d>^`{|}#e", "/a%20b%22c%3Cd%3E%5E%60%7B%7C%7D%23e");
        check("/grün".as_bytes(), "/gr%C3%BCn");
        check(b"/\x01\x7f\xff", "/%01%7F%FF");
    }

    #[test]
    fn escapes_of_the_log_are_undone() {
        check(br#"/a\"b\x20c\\d\te"#, "/a%22b%20c%5Cd%09e");
        check(br"/gr\xc3\xBCn", "/gr%C3%BCn");
        check(br"/\r\n", "/%0D%0A");
        check(br"/odd\q\x2\xzz\", "/odd%5Cq%5Cx2%5Cxzz%5C");
        check(br"/\u001f\u00zz", "/%1F%5Cu00zz");
        assert_eq!(path(br"/a\x20b", Escapes::None).as_deref(), Ok("/a%5Cx20b"));
        assert_eq!(path(b"/a#22b#7Bc#zz#", Escapes::Hash).as_deref(), Ok("/a%22b%7Bc%23zz%23"));
    }

    #[test]
    fn a_path_and_its_query_in_two() {
        let both = |path: &[u8], query: Option<&[u8]>| {
            let mut name = String::new();
            push_path_and_query(path, query, &mut name).map(|()| name)
        };
        assert_eq!(both(b"/a b", None).as_deref(), Ok("/a%20b"));
        assert_eq!(both(b"/what?", Some(b"q=1?&r=a b")).as_deref(), Ok("/what%3F?q=1?&r=a%20b"));
        assert_eq!(both(b"a", None), Err(Defect::NotAPath));
        assert_eq!(both(b"/a", Some(&[b'q'; 8_190])), Err(Defect::PathTooLong));
        assert_eq!(both(b"/a", Some(&[b'q'; 8_189])).map(|name| name.len()), Ok(8_192));
    }

    #[test]
    fn hosts_are_left_out() {
        check(b"http://other.example/path?q", "/path?q");
        check(b"HTTPS://other.example:8443", "/");
        check(b"http://other.example?q", "/?q");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for wrong in [&b"*"[..], b"", b"?q", b"other.example:443", b"ftp://h/x", b"\\x2fa"] {
            assert_eq!(path(wrong, Escapes::Backslash), Err(Defect::NotAPath), "{wrong:?}");
        }
        assert_eq!(path(&[b'/'; 8_192], Escapes::Backslash).map(|path| path.len()), Ok(8_192));
        assert_eq!(path(&[b'/'; 8_193], Escapes::Backslash), Err(Defect::PathTooLong));
        assert_eq!(path(&[&b"/"[..], &[b' '; 3_000]].concat(), Escapes::Backslash), Err(Defect::PathTooLong));
    }
}
