//! The answer to a head that the guard refused, with a body that says why.
//!
//! hyper keeps the order of answers, but its own answer to what it cannot parse is empty. It is recognised
//! among what hyper writes, and this one is sent in its place.

use crate::violation::FramingViolation;

/// Answer in bytes, with the date of hyper's, and without its text where the method was HEAD; the connection
/// ends after it.
pub(crate) fn answer(violation: FramingViolation, is_head: bool, empty: &[u8]) -> Vec<u8> {
    let status = match violation {
        FramingViolation::HeadTooLarge | FramingViolation::TooManyFields => {
            "431 Request Header Fields Too Large"
        }
        _ => "400 Bad Request",
    };
    let (name, text) = (violation.as_str(), violation.explanation());
    let mut lines = str::from_utf8(empty).unwrap_or_default().split("\r\n");
    let date = lines.find(|line| line.starts_with("date: ")).unwrap_or_default();
    let length = text.len();
    let text = if is_head { "" } else { text };
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\n\
         content-length: {length}\r\nflashweir-error: {name}\r\n{date}\r\n\r\n{text}"
    )
    .into_bytes()
}

/// Position of hyper's own answer to a refused head in the bytes that it writes: the answer comes last, and
/// has no fields but these three.
pub(crate) fn find_empty_answer(bytes: &[u8]) -> Option<usize> {
    let start = memchr::memmem::rfind(bytes, b"HTTP/1.1 4")?;
    let head = str::from_utf8(bytes[start..].strip_suffix(b"\r\n\r\n")?).ok()?;
    let mut fields = 0;
    for line in head.split("\r\n").skip(1) {
        let is_known =
            line == "connection: close" || line == "content-length: 0" || line.starts_with("date: ");
        fields += usize::from(is_known);
        if !is_known {
            return None;
        }
    }
    (fields == 3).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_an_upstream_cannot_have_sent_is_found() {
        let empty =
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        let owed = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        assert_eq!(find_empty_answer(empty), Some(0));
        assert_eq!(find_empty_answer(&[&owed[..], empty].concat()), Some(owed.len()));
        assert_eq!(find_empty_answer(&[&empty[..], b"x"].concat()), None);
        assert_eq!(find_empty_answer(owed), None, "the connection goes on");
        let named =
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\nserver: a\r\n\r\n";
        assert_eq!(find_empty_answer(named), None);
    }

    #[test]
    fn an_answer_is_as_long_as_it_says() {
        for violation in FramingViolation::ALL {
            let empty = b"HTTP/1.1 400 Bad Request\r\ndate: now\r\n\r\n";
            let of_head = String::from_utf8(answer(violation, true, empty)).expect("text");
            let answer = String::from_utf8(answer(violation, false, empty)).expect("text");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
            assert!(head.ends_with("\r\ndate: now"), "{answer}");
            assert!(body.ends_with(".\n") && body.len() > 20, "{answer}");
            assert_eq!(of_head.strip_suffix("\r\n\r\n"), Some(head), "the same without its text");
        }
    }
}
