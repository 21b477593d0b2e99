//! The two stages of a service for overload control from node to node: the ladder obeys what was decided for
//! the nodes in front of this one, gapping what the service's upstream asked for. Neither decides: see
//! [`ladder`](crate::ladder) and [`gapping`](crate::gapping).
//!
//! Neither has a queue here: requests wait in the sentry's. A request that has waited there was judged by the
//! ladder when it came; its upstream's limit is asked about again, because the token was not taken meanwhile.

use crate::gapping::{GappedTarget, Restriction, Settings};
use crate::ladder::Orders;
use crate::retry_after::AT_A_BOUND;
use flashweir_core::{Duration, Instant, Reason, Rng, Shed};

/// A worker handles what has come in the meantime in one go; what is due in this time may go together, or its
/// tokens are lost.
const BURST: Duration = Duration::from_millis(20);

/// Both stages of one service at one worker.
#[derive(Debug)]
pub(super) struct BetweenNodes {
    orders: Orders,
    upstream: GappedTarget<()>,
}

impl BetweenNodes {
    /// Without discard orders and without restriction.
    pub(super) fn new() -> Self {
        let settings = Settings { queue_max: 0, burst: BURST, ..Settings::default() };
        // The rule is a rate, which draws nothing.
        Self { orders: Orders::default(), upstream: GappedTarget::new(settings, Rng::new(0)) }
    }

    pub(super) fn obey(&mut self, orders: Orders) {
        self.orders = orders;
    }

    pub(super) fn restrict(&mut self, now: Instant, restriction: Option<Restriction>) {
        if restriction.as_ref() != self.upstream.restriction() {
            self.upstream.restrict(now, restriction);
        }
    }

    /// The ladder: a request of this rank, that its sender `is_beyond_share` with.
    pub(super) fn check_ladder(&self, rank: u8, is_beyond_share: bool) -> Result<(), Shed> {
        let refuse = |reason| Err(Shed { reason, retry_after: AT_A_BOUND });
        if is_beyond_share && self.orders.discards_excess {
            return refuse(Reason::SenderShare);
        }
        match self.orders.discards_from {
            Some(from_rank) if rank >= from_rank => refuse(Reason::Ladder),
            _ => Ok(()),
        }
    }

    /// Gapping. Takes nothing.
    pub(super) fn check_upstream(&mut self, now: Instant, rank: u8) -> Result<(), Shed> {
        match self.upstream.would_send(now, rank) {
            true => Ok(()),
            false => Err(Shed { reason: Reason::UpstreamFeedback, retry_after: AT_A_BOUND }),
        }
    }

    /// A request goes to the upstream: it takes its token. Nothing has come between the check and this.
    pub(super) fn commit(&mut self, now: Instant, rank: u8) {
        let _ = self.upstream.arrive(now, rank, ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rate;

    fn reason(result: Result<(), Shed>) -> Option<Reason> {
        result.err().map(|shed| shed.reason)
    }

    #[test]
    fn the_ladder_obeys_by_rank_and_by_share() {
        let mut stages = BetweenNodes::new();
        assert_eq!(reason(stages.check_ladder(9, true)), None, "nothing was ordered");
        stages.obey(Orders { discards_from: Some(2), discards_excess: true });
        assert_eq!(
            [1, 2, 3].map(|rank| reason(stages.check_ladder(rank, false))),
            [None, Some(Reason::Ladder), Some(Reason::Ladder)]
        );
        assert_eq!(reason(stages.check_ladder(0, true)), Some(Reason::SenderShare));
    }

    /// Goal: over ten seconds the upstream gets the rate, however many requests are only checked. Method:
    /// 400 a second of which each is checked twice, as one that waits is.
    #[test]
    fn a_check_takes_nothing_and_a_commit_takes_the_token() {
        let mut stages = BetweenNodes::new();
        let rate = Rate::from_per_second(100.0);
        stages.restrict(Instant::ZERO, Some(Restriction { from_rank: 1, severity: 1, rate }));
        let mut sent = 0;
        for number in 0..4_000 {
            let now = Instant::from_nanos(2_500_000 * number);
            let may = stages.check_upstream(now, 1).is_ok();
            assert_eq!(stages.check_upstream(now, 1).is_ok(), may);
            assert!(stages.check_upstream(now, 0).is_ok(), "rank 0 is not restricted");
            if may {
                stages.commit(now, 1);
                sent += 1;
            }
        }
        assert!((995..=1_005).contains(&sent), "{sent}");
        stages.restrict(Instant::from_secs(10), None);
        assert!((0..50).all(|_| stages.check_upstream(Instant::from_secs(10), 1).is_ok()));
    }
}
