//! Rate advertised to senders while nothing is known of the origin but its completion rate.
//!
//! The sentry takes seconds to know an origin that it meets in the middle of a crowd, and until then requests
//! pile up: those that came in a second of 2.25 times the capacity wait for longer than a second, and are
//! refused in the end. So senders are asked for what is completed as soon as
//!
//! * the sentry refuses requests, or
//! * requests take longer and longer ([`Growth`]), and those that wait now will take longer than they may,
//!
//! and until neither was so for a second. A backlog that is longer or shorter than half of what may wait
//! corrects the rate.

use super::growth::Growth;
use super::plan::LadderInput;
use super::{Rung, Rungs, level_us};
use flashweir_core::{Duration, Instant, Rate};

/// More than what is completed, so that requests go on waiting: the sentry raises its limit only while
/// requests wait. Not much more, because the node refuses the rest.
const PART_MAX: f64 = 1.05;
/// Lower bound: completions in the first moments may be far fewer than the origin can do.
const PART_MIN: f64 = 0.5;
/// The time in which a backlog that is off comes back by two thirds.
const SETTLING_S: f64 = 0.8;
/// It is asked for this long after the last sign of an overload.
const KEPT_FOR: Duration = Duration::from_secs(1);
/// While it is asked, a backlog of this part of what may wait is a sign.
const WAITS_STILL: u64 = 4;

/// However short the target is.
const WAIT_MIN_US: u64 = 10_000;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstRule {
    growth: Growth,
    /// Time of the last sign of an overload.
    seen_at: Option<Instant>,
    part: f64,
    wait_us: u64,
}

impl FirstRule {
    /// Takes measurements. `is_asked`: something is asked of senders now.
    pub(super) fn observe(&mut self, now: Instant, input: &LadderInput, is_asked: bool) {
        self.growth.observe(now, input.backlog_milli, input.completed_milli);
        let capacity = Rate::from_per_second(self.growth.completed_rps().unwrap_or(0.0));
        let level_us = level_us(input.backlog_milli, capacity);
        let wait_us = input.wait_us.max(WAIT_MIN_US);
        self.wait_us = wait_us;
        let is_too_much = self.growth.is_growing() && level_us >= wait_us;
        let waits_still = is_asked && level_us >= wait_us / WAITS_STILL;
        if input.is_refusing || is_too_much || waits_still {
            self.seen_at = Some(now);
        }
        let error_s = (level_us as f64 - wait_us as f64 / 2.0) / 1e6;
        self.part = (PART_MAX - error_s / SETTLING_S).clamp(PART_MIN, PART_MAX);
    }

    /// Completions per second; none after too few of them.
    pub(super) fn completed_rps(&self) -> Option<f64> {
        self.growth.completed_rps()
    }

    /// Returns true if more came lately than the origin completes.
    pub(super) fn is_overloaded(&self, now: Instant) -> bool {
        self.seen_at.is_some_and(|seen_at| now.saturating_since(seen_at) < KEPT_FOR)
    }

    /// Within which the backlog is to be. Requests may wait for three times as long as they are to: those
    /// that came before anything was asked can be answered in time yet.
    pub(super) fn rungs(&self) -> Option<Rungs> {
        let wait_us = self.wait_us;
        Rungs::single(Rung { abatement: wait_us / WAITS_STILL, onset: wait_us / 2, discard: wait_us * 3 / 2 })
            .ok()
    }

    /// Rate to advertise, as a part of the completion rate.
    pub(super) fn part(&self) -> f64 {
        self.part
    }
}
