//! The part of an answer that is kept; the rest is read and forgotten.

use flashweir_core::Reason;
use flashweir_core::limits::PERSON_WAIT_SECONDS;
use std::time::{Duration, Instant, SystemTime};

/// An answer that arrived whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The final status code; those of 1xx that came before it are skipped.
    pub(crate) status: u16,
    /// Flashweir's reason, if the answer names one.
    pub(crate) reason: Option<Reason>,
    /// The wait the answer asks for.
    pub(crate) retry_after: Option<Duration>,
    /// Arrival of its head.
    pub(crate) head_at: Instant,
    /// Arrival of its end.
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

/// Wait that `Retry-After` (RFC 9110 §10.2.3) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAfter {
    /// Wait for this time.
    Wait(Duration),
    /// A moment, by an answer that does not say how late it is by its own clock.
    Until(SystemTime),
}

impl RetryAfter {
    /// Reads the field's value: seconds, or a date, which is understood by the clock of the server that sent
    /// it where the value of the answer's `Date` field is given too. `None`: neither.
    pub(super) fn read(value: &[u8], date: Option<&[u8]>) -> Option<Self> {
        let value = value.trim_ascii();
        if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
            // Only digits: a value that does not fit is longer than any person waits.
            let seconds = std::str::from_utf8(value).ok()?.parse().unwrap_or(u64::MAX);
            return Some(Self::Wait(Duration::from_secs(seconds)));
        }
        let until = http_date(value)?;
        Some(match date.and_then(http_date) {
            Some(sent_at) => Self::Wait(between(sent_at, until)),
            None => Self::Until(until),
        })
    }

    /// The wait, at most [`PERSON_WAIT_SECONDS`]; none until a moment that has passed. `now` is the wall
    /// clock's time.
    pub(super) fn wait(self, now: impl FnOnce() -> SystemTime) -> Duration {
        let wait = match self {
            Self::Wait(wait) => wait,
            Self::Until(until) => between(now(), until),
        };
        wait.min(Duration::from_secs(PERSON_WAIT_SECONDS))
    }
}

fn http_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value.trim_ascii()).ok()?).ok()
}

/// Nothing if `to` is not after `from`.
fn between(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
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

    /// The wait of a client whose clock says 07:27:50.
    fn waited_s(retry_after: &str, date: Option<&str>) -> Option<u64> {
        let now = || http_date(b"Wed, 21 Oct 2026 07:27:50 GMT").unwrap();
        let read = RetryAfter::read(retry_after.as_bytes(), date.map(str::as_bytes))?;
        Some(read.wait(now).as_secs())
    }

    #[test]
    fn a_date_is_waited_for_by_the_servers_clock_or_else_by_ours() {
        let until = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(waited_s(until, Some("Wed, 21 Oct 2026 07:27:57 GMT")), Some(3));
        assert_eq!(waited_s(until, None), Some(10));
        assert_eq!(waited_s(until, Some("no date")), Some(10));
        // The two older forms of RFC 9110 §5.6.7.
        assert_eq!(waited_s("Wednesday, 21-Oct-26 07:28:00 GMT", None), Some(10));
        assert_eq!(waited_s("Wed Oct 21 07:28:00 2026", None), Some(10));
        // Past, and far.
        assert_eq!(waited_s("Wed, 21 Oct 2026 07:27:00 GMT", None), Some(0));
        assert_eq!(waited_s(until, Some("Wed, 21 Oct 2026 07:28:01 GMT")), Some(0));
        assert_eq!(waited_s("Thu, 21 Oct 2027 07:28:00 GMT", None), Some(PERSON_WAIT_SECONDS));
        assert_eq!(waited_s("Wed, 21 Oct 2026 07:28:00 CET", None), None);
    }

    #[test]
    fn only_whole_seconds_are_waited() {
        let check = |text: &str, seconds: Option<u64>| assert_eq!(waited_s(text, None), seconds, "{text:?}");
        check("0", Some(0));
        check(" 120 ", Some(120));
        check("99999999999999999999999999", Some(PERSON_WAIT_SECONDS));
        check("-5", None);
        check("+5", None);
        check("1.5", None);
        check("", None);
    }
}
