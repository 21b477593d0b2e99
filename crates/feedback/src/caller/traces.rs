//! Recognition of requests that belong to work that has begun: a later call of a trace whose first call was
//! sent.
//!
//! A user request that needs three calls is worth nothing after two. Where each call is refused with the same
//! chance, three calls succeed with the cube of it (DAGOR's problem). So the first call decides, and the
//! others of its trace pass and take their tokens on credit. The trace is that of `traceparent` (W3C Trace
//! Context), which a process with tracing passes on anyway.
//!
//! **Bounded**: the newest [`TRACES`] traces for [`MEMORY`] each, and [`CALLS_MAX`] calls of each trace; a
//! batch job that makes thousands of calls under one trace is then held to the limit as others are. Cost: one
//! look-up in a tree, no allocation once it is full.

use alloc::collections::{BTreeMap, VecDeque};
use flashweir_core::{Duration, Instant};

/// Traces that are remembered. 24 bytes each in the queue, and as much in the tree.
const TRACES: usize = flashweir_core::limits::CALLER_TRACES;
/// Time for which a trace is remembered after its first call: no person waits longer for a request.
const MEMORY: Duration = Duration::from_secs(10);
/// Calls of one trace that pass after the first.
const CALLS_MAX: u8 = 15;

/// Traces whose first call was sent lately.
#[derive(Debug, Default)]
pub struct RecentTraces {
    /// Calls that may still pass.
    left: BTreeMap<u128, u8>,
    oldest: VecDeque<(Instant, u128)>,
}

impl RecentTraces {
    /// The first call of a trace was sent.
    pub fn begin(&mut self, now: Instant, trace: u128) {
        self.forget(now);
        if self.left.contains_key(&trace) {
            return;
        }
        if self.oldest.len() >= TRACES
            && let Some((_, oldest)) = self.oldest.pop_front()
        {
            self.left.remove(&oldest);
        }
        self.left.insert(trace, CALLS_MAX);
        self.oldest.push_back((now, trace));
    }

    /// Returns whether a call belongs to a trace that has begun; then it counts as one of its calls.
    pub fn continues(&mut self, now: Instant, trace: u128) -> bool {
        self.forget(now);
        match self.left.get_mut(&trace) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn forget(&mut self, now: Instant) {
        while let Some((begun, trace)) = self.oldest.front().copied() {
            if now.saturating_since(begun) < MEMORY {
                return;
            }
            self.oldest.pop_front();
            self.left.remove(&trace);
        }
    }
}

/// The trace of a `traceparent` value, version 00 or a later one with the same beginning. None for an invalid
/// value and for the trace 0.
#[must_use]
pub fn trace_id(value: &[u8]) -> Option<u128> {
    let (version, rest) = (value.get(..2)?, value.get(2..)?);
    let is_version = version.iter().all(u8::is_ascii_hexdigit) && version != b"ff";
    let [b'-', rest @ ..] = rest else { return None };
    let (digits, rest) = (rest.get(..32)?, rest.get(32..)?);
    if !is_version || rest.first() != Some(&b'-') {
        return None;
    }
    let trace = digits.iter().try_fold(0u128, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum << 4 | u128::from(digit - b'0')),
        b'a'..=b'f' => Some(sum << 4 | u128::from(digit - b'a' + 10)),
        _ => None,
    })?;
    (trace != 0).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_after_the_first_pass_for_a_while_and_so_many_times() {
        let mut traces = RecentTraces::default();
        let at = Instant::from_secs;
        assert!(!traces.continues(at(0), 7));
        traces.begin(at(0), 7);
        traces.begin(at(5), 8);
        assert!((0..CALLS_MAX).all(|_| traces.continues(at(9), 7)));
        assert!(!traces.continues(at(9), 7), "a batch job");
        assert!(traces.continues(at(14), 8));
        assert!(!traces.continues(at(15), 8));
        assert!(traces.left.is_empty() && traces.oldest.is_empty());
    }

    #[test]
    fn the_number_of_traces_is_bounded() {
        let mut traces = RecentTraces::default();
        for trace in 0..3 * TRACES as u128 {
            traces.begin(Instant::ZERO, trace + 1);
        }
        assert_eq!((traces.left.len(), traces.oldest.len()), (TRACES, TRACES));
        assert!(traces.continues(Instant::ZERO, 3 * TRACES as u128) && !traces.continues(Instant::ZERO, 1));
    }

    #[test]
    fn a_trace_is_that_of_traceparent() {
        let of = |text: &str| trace_id(text.as_bytes());
        assert_eq!(of("00-000000000000000000000000000000ff-00f067aa0ba902b7-01"), Some(255));
        assert_eq!(
            of("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x").map(|id| id as u16),
            Some(0x4736)
        );
        for wrong in [
            "",
            "00",
            "ff-000000000000000000000000000000ff-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-000000000000000000000000000000FF-00f067aa0ba902b7-01",
            "00-000000000000000000000000000000ff",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
