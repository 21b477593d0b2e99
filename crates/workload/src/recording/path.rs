//! Paths as a log has them, made such that they can be sent.

use crate::recording::problem::Defect;
use flashweir_core::limits::RECORDED_PATH_BYTES;

/// Appends path and query to `name`, percent-encoding every byte that RFC 3986 allows in neither; what was
/// encoded stays so. Of an absolute URL (a client that took the server for its proxy) host and scheme are left
/// out. With `escaped`, the escapes web servers write into their logs are undone first.
pub(super) fn push_path(target: &[u8], escaped: bool, name: &mut String) -> Result<(), Defect> {
    let start = name.len();
    let path = without_origin(target);
    match path.first() {
        Some(b'/') => {}
        None | Some(b'?') if path.len() < target.len() => name.push('/'),
        _ => return Err(Defect::NotAPath),
    }
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'\\' if escaped => unescape(after),
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
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    match after {
        [b'x', high, low, rest @ ..] if let (Some(high), Some(low)) = (hex(*high), hex(*low)) => {
            (high << 4 | low, rest)
        }
        [byte @ (b'"' | b'\\'), rest @ ..] => (*byte, rest),
        [b't', rest @ ..] => (b'\t', rest),
        [b'n', rest @ ..] => (b'\n', rest),
        [b'r', rest @ ..] => (b'\r', rest),
        _ => (b'\\', after),
    }
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

    fn path(target: &[u8], escaped: bool) -> Result<String, Defect> {
        let mut name = "GET ".to_owned();
        push_path(target, escaped, &mut name).map(|()| name["GET ".len()..].to_owned())
    }

    fn check(target: &[u8], wanted: &str) {
        assert_eq!(path(target, true).as_deref(), Ok(wanted));
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
        assert_eq!(path(br"/a\x20b", false).as_deref(), Ok("/a%5Cx20b"));
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
            assert_eq!(path(wrong, true), Err(Defect::NotAPath), "{wrong:?}");
        }
        assert_eq!(path(&[b'/'; 8_192], true).map(|path| path.len()), Ok(8_192));
        assert_eq!(path(&[b'/'; 8_193], true), Err(Defect::PathTooLong));
        assert_eq!(path(&[&b"/"[..], &[b' '; 3_000]].concat(), true), Err(Defect::PathTooLong));
    }
}
