//! The form in which paths are compared: as servers read them, so that a rule cannot be dodged by writing a
//! path differently (RFC 3986 §6.2.2).

/// `path` percent-decoded once, `//` taken for `/`, `.` and `..` resolved. A slash that came encoded (`%2F`)
/// counts as one: most servers read it so, and one that does not only finds the request in the class of its
/// neighbours. What is forwarded is the client's own spelling. Linear; allocates nothing while `scratch` has
/// room.
#[inline]
pub(super) fn normal<'a>(path: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if is_normal(path) { path } else { normalised(path, scratch) }
}

#[cold]
fn normalised<'a>(path: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    decode(path, scratch);
    let length = resolve(scratch);
    scratch.get(..length).unwrap_or_default()
}

/// True for nearly all paths; one that has no slash at its beginning (`*`) has no other form.
fn is_normal(path: &[u8]) -> bool {
    let mut is_after_slash = false;
    let is_plain = |&byte: &u8| {
        // Letters and digits, of which most paths are, come after the others.
        if byte > b'/' {
            is_after_slash = false;
            return true;
        }
        let is_plain = byte != b'%' && !(is_after_slash && (byte == b'/' || byte == b'.'));
        is_after_slash = byte == b'/';
        is_plain
    };
    path.first() != Some(&b'/') || path.iter().all(is_plain)
}

/// Decodes percent escapes. An invalid escape stays as it is.
fn decode(path: &[u8], decoded: &mut Vec<u8>) {
    decoded.clear();
    let mut rest = path;
    while let [byte, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, after @ ..] => {
                hex(*high).zip(hex(*low)).map(|(high, low)| (high * 16 + low, after))
            }
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*byte, after));
        decoded.push(byte);
        rest = after;
    }
}

fn hex(digit: u8) -> Option<u8> {
    // A digit is below 16.
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

/// Resolves in place (RFC 3986 §5.2.4) and returns the length of the result. Each segment that is kept was
/// read behind its own slash, so what is written never overtakes what is read.
fn resolve(path: &mut [u8]) -> usize {
    let (mut read, mut written) = (0, 0);
    while read < path.len() {
        let start =
            path[read..].iter().position(|&byte| byte != b'/').map_or(path.len(), |slashes| read + slashes);
        let end =
            path[start..].iter().position(|&byte| byte == b'/').map_or(path.len(), |length| start + length);
        let is_kept = match &path[start..end] {
            b"" | b"." => false,
            b".." => {
                written = path[..written].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                false
            }
            _ => true,
        };
        if is_kept {
            path[written] = b'/';
            path.copy_within(start..end, written + 1);
            written += 1 + end - start;
        } else if end == path.len() {
            // "/a/.." and "/a/." name a folder, as "/a/" does.
            path[written] = b'/';
            written += 1;
        }
        read = end;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form_of(path: &str) -> String {
        String::from_utf8(normal(path.as_bytes(), &mut Vec::new()).to_vec()).expect("text")
    }

    #[test]
    fn every_spelling_of_a_path_has_one_form() {
        for (path, form) in [
            ("/", "/"),
            ("//", "/"),
            ("/checkout/pay", "/checkout/pay"),
            ("//checkout//pay", "/checkout/pay"),
            ("/./checkout/./pay", "/checkout/pay"),
            ("/x/../checkout/pay", "/checkout/pay"),
            ("/../../checkout/pay", "/checkout/pay"),
            ("/%63heckout/p%61y", "/checkout/pay"),
            ("/x/%2e%2E/checkout/pay", "/checkout/pay"),
            ("/x/.%2e/checkout/%2e/pay", "/checkout/pay"),
            ("/checkout%2Fpay", "/checkout/pay"),
            ("/%2fcheckout/pay", "/checkout/pay"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a/b/%2e%2e", "/a/"),
            ("/a//", "/a/"),
            ("/a/...", "/a/..."),
            ("/a/.b", "/a/.b"),
            // Once only: what is left is what the server sees.
            ("/%2541", "/%41"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%zz", "/%zz"),
            ("/%+1", "/%+1"),
            ("*", "*"),
        ] {
            assert_eq!(form_of(path), form, "{path}");
        }
    }

    proptest! {
        #[test]
        fn the_form_has_no_other_form(path in "/[a./%2eEfF]{0,24}") {
            let mut scratch = Vec::new();
            let once = normal(path.as_bytes(), &mut scratch).to_vec();
            prop_assert!(once.starts_with(b"/"));
            let text = String::from_utf8_lossy(&once);
            prop_assert!(!text.contains("//"), "{text}");
            prop_assert!(!text.split('/').any(|segment| segment == "." || segment == ".."), "{text}");
        }

        #[test]
        fn a_plain_path_may_be_spelt_in_escapes(path in "(/[a-z]{1,5}){1,4}", which in any::<u64>()) {
            let spelt: String = path.bytes().enumerate().map(|(at, byte)| {
                let escape = at > 0 && which >> (at % 64) & 1 == 1;
                if escape { format!("%{byte:02x}") } else { char::from(byte).to_string() }
            }).collect();
            prop_assert_eq!(form_of(&spelt), path);
        }
    }
}
