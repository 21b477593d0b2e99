//! The limit of one upstream as the sender keeps it: soft state that only newer messages change and that time
//! ends.
//!
//! | what arrives | what becomes of the limit |
//! |---|---|
//! | a newer sequence, or a later epoch | replaced; a release ends it |
//! | the same sequence or an older one of this epoch | unchanged: a copy, a late message or a replay |
//! | an earlier epoch within [`EPOCH_MEMORY`] of the last message | unchanged |
//! | an earlier epoch later than that | replaced: the node's clock was set back while it was down |
//! | nothing for the time to live | half of what is offered at once, or the limit where that is more; then 1.5 times as much each second |
//!
//! A replaced limit never falls below a floor: a hundredth of what is offered, and [`RATE_FLOOR`]. So a rate
//! of 0, forged or not, leaves a probe whose response carries the truth, and the floors of all senders
//! together stay below a node's capacity up to a hundredfold overload.
//!
//! Why the opening is gentle: a limit that vanishes lets every sender's backlog go at the same moment, which
//! brings the overload back. From half of what is offered to one and a half times of it takes 2.7 s, which is
//! when the limit is removed. Cost: a few comparisons, one power after expiry; 80 bytes. Source: ALGORITHMS
//! §5.2.

use crate::Feedback;
use flashweir_core::{Duration, Instant, Rate};

/// No limit is applied below this rate: one request in ten seconds finds out whether the node still asks for
/// it.
pub const RATE_FLOOR: Rate = Rate::from_milli(100);
/// The part of what is offered below which no limit is applied: see the module.
const FLOOR_PART: u64 = 100;
/// A node that restarts with an earlier epoch is believed after this much silence: by then any limit it had
/// set is over.
const EPOCH_MEMORY: Duration = Duration::from_secs(20);
/// Factor by which an expired limit grows in a second.
const GROWTH_PER_S: f64 = 1.5;
/// An expired limit begins with at least this part of what is offered.
const FIRST_STEP: f64 = 0.5;
/// An expired limit of this many times what is offered binds no request and is removed.
const OPEN_AT: f64 = 1.5;
/// An expired limit is removed after this time, however much is offered.
const OPEN_AFTER: Duration = Duration::from_secs(10);

/// The limit that one upstream asked for.
#[derive(Clone, Debug, Default)]
pub struct UpstreamLimit {
    last: Option<Last>,
    asked: Option<RequestedLimit>,
}

/// A limit in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests of this rank and less important ones are limited.
    pub from_rank: u8,
    /// Onset levels that the node has crossed.
    pub severity: u8,
    /// Maximum rate of the limited ranks together.
    pub rate: Rate,
    /// True if the time to live is over and the limit opens.
    pub is_expired: bool,
}

/// Effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It is newer than the last one and in force.
    Newer,
    /// It is not, and was ignored.
    Stale,
}

/// Identity of the newest message.
#[derive(Clone, Copy, Debug)]
struct Last {
    epoch: u32,
    sequence: u32,
    heard: Instant,
}

#[derive(Clone, Copy, Debug)]
struct RequestedLimit {
    from_rank: u8,
    severity: u8,
    rate: Rate,
    expires_at: Instant,
    /// Arrivals at this sender in the limited ranks when the message came.
    offered: Rate,
}

impl UpstreamLimit {
    /// Takes a message in. `offered` is what arrives at this sender for the node now, before any limit.
    pub fn hear(&mut self, now: Instant, feedback: &Feedback, offered: Rate) -> News {
        if !self.is_newer(now, feedback) {
            return News::Stale;
        }
        self.last = Some(Last { epoch: feedback.epoch, sequence: feedback.sequence, heard: now });
        self.asked = feedback.rate.map(|rate| RequestedLimit {
            from_rank: feedback.from_rank,
            severity: feedback.severity,
            rate: rate.max(floor(offered)),
            expires_at: now + feedback.ttl,
            offered,
        });
        News::Newer
    }

    /// The limit now; none where the node asks for none, or where an expired one has opened.
    #[must_use]
    pub fn limit(&self, now: Instant) -> Option<Limit> {
        let RequestedLimit { from_rank, severity, rate, expires_at, offered } = self.asked?;
        let limit = Limit { from_rank, severity, rate, is_expired: false };
        if now < expires_at {
            return Some(limit);
        }
        let age = now.saturating_since(expires_at);
        let offered_rps = offered.per_second();
        let first_rps = rate.per_second().max(FIRST_STEP * offered_rps);
        let rate_rps = first_rps * libm::pow(GROWTH_PER_S, age.as_secs_f64());
        let is_open = age >= OPEN_AFTER || rate_rps >= OPEN_AT * offered_rps;
        (!is_open).then(|| Limit { rate: Rate::from_per_second(rate_rps), is_expired: true, ..limit })
    }

    /// Age of the newest message; none before the first.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.last.map(|last| now.saturating_since(last.heard))
    }

    fn is_newer(&self, now: Instant, feedback: &Feedback) -> bool {
        let Some(last) = self.last else { return true };
        match feedback.epoch.cmp(&last.epoch) {
            core::cmp::Ordering::Greater => true,
            core::cmp::Ordering::Equal => feedback.sequence > last.sequence,
            core::cmp::Ordering::Less => now.saturating_since(last.heard) >= EPOCH_MEMORY,
        }
    }
}

fn floor(offered: Rate) -> Rate {
    Rate::from_milli(offered.as_milli() / FLOOR_PART).max(RATE_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERED: Rate = Rate::from_milli(100_000);

    fn message(epoch: u32, sequence: u32, rate: Option<f64>) -> Feedback {
        let ttl = Duration::from_secs(2);
        Feedback { epoch, sequence, from_rank: 1, severity: 2, rate: rate.map(Rate::from_per_second), ttl }
    }

    fn rate(limit: &UpstreamLimit, now_ms: u64) -> Option<f64> {
        limit.limit(Instant::from_millis(now_ms)).map(|limit| limit.rate.per_second())
    }

    #[test]
    fn only_newer_messages_change_the_limit() {
        let mut limit = UpstreamLimit::default();
        let mut hear = |millis, epoch, sequence, rate| {
            let now = Instant::from_millis(millis);
            let news = limit.hear(now, &message(epoch, sequence, rate), OFFERED);
            (news, limit.limit(now).map(|limit| limit.rate.per_second()))
        };
        assert_eq!(hear(0, 7, 5, Some(40.0)), (News::Newer, Some(40.0)));
        assert_eq!(hear(1, 7, 5, Some(90.0)), (News::Stale, Some(40.0)));
        assert_eq!(hear(2, 7, 4, None), (News::Stale, Some(40.0)));
        assert_eq!(hear(3, 6, 9, None), (News::Stale, Some(40.0)));
        assert_eq!(hear(4, 7, 6, Some(30.0)), (News::Newer, Some(30.0)));
        assert_eq!(hear(5, 8, 0, Some(50.0)), (News::Newer, Some(50.0)), "a later run");
        assert_eq!(hear(6, 8, 1, None), (News::Newer, None), "a release");
        assert_eq!(hear(7, 8, 0, Some(1.0)), (News::Stale, None));
        assert_eq!(hear(20_006, 3, 0, Some(60.0)), (News::Newer, Some(60.0)), "its clock was set back");
    }

    #[test]
    fn a_limit_that_is_not_renewed_opens_step_by_step() {
        let mut limit = UpstreamLimit::default();
        limit.hear(Instant::ZERO, &message(1, 1, Some(20.0)), OFFERED);
        assert_eq!(rate(&limit, 1_999), Some(20.0));
        assert_eq!(rate(&limit, 2_000), Some(50.0));
        assert_eq!(rate(&limit, 3_000), Some(75.0));
        assert_eq!(rate(&limit, 4_700), Some(149.423));
        assert_eq!(rate(&limit, 4_800), None);
        limit.hear(Instant::from_secs(10), &message(1, 2, Some(90.0)), OFFERED);
        assert_eq!(rate(&limit, 12_000), Some(90.0), "it never falls");
    }

    #[test]
    fn a_rate_of_zero_leaves_a_probe() {
        let mut limit = UpstreamLimit::default();
        limit.hear(Instant::ZERO, &message(1, 1, Some(0.0)), OFFERED);
        assert_eq!(rate(&limit, 0), Some(1.0));
        limit.hear(Instant::ZERO, &message(1, 2, Some(0.0)), Rate::ZERO);
        assert_eq!(rate(&limit, 0), Some(0.1));
        assert_eq!(rate(&limit, 2_000), None, "nothing is offered, so nothing binds");
    }
}
