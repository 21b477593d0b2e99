//! What is kept of an answer; the rest of it is read and forgotten.

use flashweir_core::Reason;
use flashweir_core::limits::PERSON_WAIT_SECONDS;
use std::time::{Duration, Instant};

/// An answer that arrived whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The final status code; those of 1xx that came before it are skipped.
    pub(crate) status: u16,
    /// Flashweir's reason, if the answer names one.
    pub(crate) reason: Option<Reason>,
    /// The wait the answer asks for in seconds; a date is not understood.
    pub(crate) retry_after: Option<Duration>,
    /// When its head had arrived.
    pub(crate) head_at: Instant,
    /// When all of it had.
    pub(crate) end_at: Instant,
    /// Bytes of the body, framing left out.
    pub(crate) body_bytes: u64,
}

/// The field that names Flashweir's reason.
pub(super) const DECISION_FIELD: &str = "flashweir-decision";

/// The reason in `Flashweir-Decision: <id>; reason=<reason>`.
pub(super) fn flashweir_reason(decision: &[u8]) -> Option<Reason> {
    let decision = std::str::from_utf8(decision).ok()?;
    let name = decision.split(';').find_map(|part| part.trim().strip_prefix("reason="))?;
    Reason::ALL.into_iter().find(|reason| reason.as_str() == name.trim())
}

/// The seconds of `Retry-After` (RFC 9110 §10.2.3), at most [`PERSON_WAIT_SECONDS`]. A date is left out: it would
/// need the two clocks to agree, and servers in trouble send seconds.
pub(super) fn retry_after(value: &[u8]) -> Option<Duration> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Only digits: what does not fit is longer than anybody waits.
    let seconds = std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds.min(PERSON_WAIT_SECONDS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_read_from_the_decision() {
        let check = |text: &str, reason| assert_eq!(flashweir_reason(text.as_bytes()), reason, "{text}");
        check("0123456789abc; reason=flash_crowd", Some(Reason::FlashCrowd));
        check("0123456789abc;reason=draining", Some(Reason::Draining));
        check("0123456789abc; reason=something_new", None);
        check("0123456789abc", None);
        check("", None);
        assert_eq!(flashweir_reason(b"\xff; reason=draining"), None);
    }

    #[test]
    fn only_seconds_are_waited() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(retry_after(text.as_bytes()), seconds.map(Duration::from_secs), "{text:?}");
        };
        check("0", Some(0));
        check(" 120 ", Some(120));
        check("99999999999999999999999999", Some(PERSON_WAIT_SECONDS));
        check("Wed, 21 Oct 2026 07:28:00 GMT", None);
        check("-5", None);
        check("+5", None);
        check("1.5", None);
        check("", None);
    }
}
