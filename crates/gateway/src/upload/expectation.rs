//! `Expect: 100-continue` from end to end (RFC 9110 §10.1.1): the body of an admitted request waits until its
//! origin wants it.
//!
//! Clients of HTTP/1.1 only. The origin's 100 lets hyper ask the client for the body, which is its 100 to the
//! client. An origin that says nothing gets the body after [`AGREEMENT_MAX`], and for [`SILENT_FOR`] none of
//! its service's requests waits again: many servers know no expectations. The client then owes the beginning
//! of the body before the origin's time for an answer is over.

use flashweir_core::{Duration, Instant};
use flashweir_http::interim::Interims;
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};

/// Time for an origin to agree, or to answer otherwise; at most this part of its time for an answer.
const AGREEMENT_MAX: Duration = Duration::from_secs(1);
const AGREEMENT_PART: u32 = 4;
/// Part of the origin's time for an answer in which the body is to begin: before the origin seems to be
/// silent.
const BODY_PART: f64 = 0.75;
/// Time for which an origin that said nothing is not asked.
const SILENT_FOR: Duration = Duration::from_secs(600);

/// A body that waits for its origin.
#[derive(Debug)]
pub(crate) struct Expectation {
    interims: Interims,
    answer_max: Duration,
    /// From the first time that the body is asked for: the request may have waited for a connection before.
    is_over: Option<Pin<Box<Sleep>>>,
    begins_until: Instant,
}

/// By service of a configuration: until when its origin is not asked, because it let an expectation pass in
/// silence.
#[derive(Debug)]
pub(crate) struct SilentOrigins(Box<[Cell<Instant>]>);

impl Expectation {
    /// Begins to wait for an origin that has `answer_max` for its answer. `interims` hears its 100.
    pub(crate) fn new(interims: &Interims, now: Instant, answer_max: Duration) -> Self {
        interims.expect_continue();
        Self {
            interims: interims.clone(),
            answer_max,
            is_over: None,
            begins_until: now + answer_max.mul_f64(BODY_PART),
        }
    }

    /// Ready once the body may be sent: until when it is to begin.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        if self.interims.poll_agreed(cx).is_pending() {
            let agreement_max = AGREEMENT_MAX.min(self.answer_max / AGREEMENT_PART);
            let is_over = self.is_over.get_or_insert_with(|| Box::pin(sleep(agreement_max)));
            ready!(is_over.as_mut().poll(cx));
            self.interims.expect_no_more();
        }
        Poll::Ready(self.begins_until)
    }
}

impl SilentOrigins {
    /// None is known to be silent.
    pub(crate) fn new(services: usize) -> Self {
        Self((0..services).map(|_| Cell::new(Instant::ZERO)).collect())
    }

    /// Returns whether requests of a service ask their origin.
    pub(crate) fn are_asked(&self, service: usize, now: Instant) -> bool {
        now >= self.0[service].get()
    }

    /// The origin of a service let an expectation pass.
    pub(crate) fn add(&self, service: usize, now: Instant) {
        self.0[service].set(now + SILENT_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_origin_is_asked_again_after_a_while() {
        let (silent, at) = (SilentOrigins::new(3), Instant::from_secs);
        silent.add(1, at(5));
        assert!(!silent.are_asked(1, at(6)) && silent.are_asked(2, at(6)));
        assert!(!silent.are_asked(1, at(604)) && silent.are_asked(1, at(605)));
    }
}
