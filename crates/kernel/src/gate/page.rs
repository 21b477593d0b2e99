//! The response of the kernel's own: written out here, once for each `Retry-After`, so that the kernel only
//! copies.

use std::fmt::Write as _;

use flashweir_core::{Duration, Reason};

use super::abi::{ANSWER_BYTES, ANSWER_VARIANTS, Answer};

/// Page that a refused client is shown.
///
/// A response of up to about 200 bytes beyond the request always fits (the kernel keeps 256 bytes free before
/// a packet); where a longer one does not, the client is reset. [`Page::default`] is short enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    content_type: String,
    body: String,
}

/// A page that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// It and its head do not fit in the kernel's table.
    #[error(
        "a response of the kernel's own has at most {ANSWER_BYTES} bytes with its head; this one has {0}"
    )]
    TooLong(usize),
    /// A content type that would end its line.
    #[error("`{0}` is no content type")]
    ContentType(String),
}

impl Default for Page {
    fn default() -> Self {
        let body = "Too busy: please try again shortly.\n".to_owned();
        Self { content_type: "text/plain".to_owned(), body }
    }
}

impl Page {
    /// A page of your own.
    ///
    /// # Errors
    /// When it is too long, or the content type is none.
    pub fn new(content_type: &str, body: &str) -> Result<Self, PageError> {
        if !content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || content_type.is_empty() {
            return Err(PageError::ContentType(content_type.to_owned()));
        }
        let page = Self { content_type: content_type.to_owned(), body: body.to_owned() };
        let bytes = page.head(0, Reason::FlashCrowd).len() + page.even_body().len();
        if bytes > ANSWER_BYTES { Err(PageError::TooLong(bytes)) } else { Ok(page) }
    }

    /// The variants of the response: `Retry-After` between `retry_after` and twice that, evenly, at least a
    /// second.
    ///
    /// Their length is the same for every `retry_after` and `reason`, so they can be written over others
    /// while packets are answered: a connection in progress goes on. A packet that is answered in the very
    /// moment may carry a part of each; then its checksum, which was made for one of them, is wrong, and the
    /// client asks again.
    pub(super) fn answers(&self, retry_after: Duration, reason: Reason) -> Vec<Answer> {
        let base_s = retry_after.as_millis().div_ceil(1_000).clamp(1, RETRY_AFTER_S_MAX / 2);
        let variant_s = |variant| base_s + base_s * variant as u128 / (ANSWER_VARIANTS as u128 - 1);
        (0..ANSWER_VARIANTS).map(|variant| self.answer(variant_s(variant), reason)).collect()
    }

    fn answer(&self, retry_after_s: u128, reason: Reason) -> Answer {
        let head = self.head(retry_after_s, reason);
        let whole = [head.as_bytes(), self.even_body().as_bytes()].concat();
        let mut answer = Answer {
            whole_bytes: whole.len() as u16,
            head_bytes: head.len() as u16,
            whole_sum: sum(&whole),
            head_sum: sum(head.as_bytes()),
            ..Answer::default()
        };
        answer.bytes[..whole.len()].copy_from_slice(&whole);
        answer
    }

    /// The head, of an odd number of bytes that depends neither on the number of seconds nor on the reason
    /// (RFC 9110 §5.5 allows the blanks).
    fn head(&self, retry_after_s: u128, reason: Reason) -> String {
        let mut head = "HTTP/1.1 503 Service Unavailable\r\n".to_owned();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            write!(head, "{name}: {value}\r\n").expect("a string takes everything");
        };
        line("Retry-After", &format_args!("{retry_after_s:>5}"));
        line("Content-Type", &self.content_type);
        line("Content-Length", &self.even_body().len());
        line("Connection", &"close");
        // The last line takes the blanks, which mean nothing to a client: as many as the longest reason is
        // longer, and one more where that makes the head odd.
        let decision = format!("kernel; reason={reason}");
        let least = decision.len() + REASON_BYTES - reason.as_str().len();
        let others = head.len() + "Flashweir-Decision: \r\n\r\n".len();
        let width = least + usize::from((others + least).is_multiple_of(2));
        head + &format!("Flashweir-Decision: {decision:>width$}\r\n\r\n")
    }

    /// The body of an even number of bytes, so that head and body together have an odd one.
    fn even_body(&self) -> String {
        let filling = if self.body.len() % 2 == 1 { "\n" } else { "" };
        format!("{}{filling}", self.body)
    }
}

/// The longest name of a reason. A test compares.
const REASON_BYTES: usize = 22;
/// Five digits are kept for it; no client waits a day.
const RETRY_AFTER_S_MAX: u128 = 86_400;

/// The sum of bytes as 16-bit words in memory order (RFC 1071 §2B: the order does not matter if it is always
/// the same).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u16::from_le_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: &Answer, bytes: u16) -> String {
        String::from_utf8(answer.bytes[..usize::from(bytes)].to_vec()).expect("text")
    }

    #[test]
    fn a_response_says_when_to_come_back_and_is_short_enough_for_every_driver() {
        let answers = Page::default().answers(Duration::from_secs(10), Reason::FlashCrowd);
        let whole = text(&answers[0], answers[0].whole_bytes);
        assert!(whole.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After:    10\r\n"), "{whole}");
        assert!(whole.ends_with("\r\n\r\nToo busy: please try again shortly.\n"), "{whole}");
        assert!(whole.contains("\r\nContent-Length: 36\r\nConnection: close\r\n"), "{whole}");
        assert!(text(&answers[15], answers[15].head_bytes).contains("Retry-After:    20\r\n"));
        // 216 bytes of growth (256 less what the kernel keeps there), over "GET / HTTP/1.0\r\n\r\n" at the
        // least.
        assert!(whole.len() <= 216 + 18, "{}", whole.len());
    }

    #[test]
    fn lengths_are_odd_and_change_neither_with_the_seconds_nor_with_the_reason() {
        assert_eq!(Reason::ALL.iter().map(|reason| reason.as_str().len()).max(), Some(REASON_BYTES));
        for body in ["", "odd", "even", "<p>Come back."] {
            let page = Page::new("text/html", body).expect("short");
            let lengths = |s, reason| -> Vec<_> {
                let answers = page.answers(Duration::from_secs(s), reason);
                answers.iter().map(|answer| (answer.whole_bytes, answer.head_bytes)).collect()
            };
            let few = lengths(0, Reason::FlashCrowd);
            assert!(few.iter().all(|(whole, head)| whole % 2 == 1 && head % 2 == 1), "{few:?}");
            for reason in Reason::ALL {
                assert_eq!(lengths(1 << 30, reason), few, "{reason}");
            }
        }
    }

    #[test]
    fn a_response_says_whose_limit_was_met() {
        let answer = &Page::default().answers(Duration::from_secs(1), Reason::Capacity)[0];
        let head = text(answer, answer.head_bytes);
        assert!(head.ends_with(" kernel; reason=capacity\r\n\r\n"), "{head}");
    }

    #[test]
    fn a_page_that_does_not_fit_or_ends_its_head_is_refused() {
        let too_long = Page::new("text/html", &"x".repeat(500));
        assert!(matches!(too_long, Err(PageError::TooLong(bytes)) if bytes > 600));
        assert!(Page::new("text/html\r\nX: y", "").is_err());
        assert!(Page::new("", "").is_err());
    }
}
