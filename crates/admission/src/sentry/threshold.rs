//! Up to which class the capacity reaches (Cataclysm §3.3, eq. 5 and 6).
//!
//! Rate times service time is how many servers a class keeps busy. From the most important class on, classes
//! are let in as long as servers are left; of the first that does not fit, a share; of those after it,
//! nothing. Against the paper: capacity is all servers (the paper's "1" is one), a little less than full;
//! only what is offered of a guarantee is set aside, and what is let in under it is not counted again;
//! classes worth the same have one share; rates are those offered, not those admitted; and the limit on
//! requests in flight stays in force, because a share that is wrong for one period would otherwise leave a
//! backlog that takes minutes to drain.

use super::sample::Sample;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::{Duration, Instant};

/// Rates by period, and the shares that follow.
#[derive(Debug)]
pub(super) struct Threshold {
    settings: Settings,
    /// Since the period began.
    offered: Vec<u64>,
    began: Option<Instant>,
    rates_rps: Option<Vec<f64>>,
    shares: Vec<u32>,
    /// Estimated number of servers.
    servers: Option<f64>,
    /// The time since that was last found, and for how long a request has waited for room.
    span_s: f64,
    oldest: Duration,
}

/// Period, weight of the newest rate, and planned utilisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
    /// Shares are found so often: 15 s in the paper.
    pub(super) period: Duration,
    /// Weight of the last period's rate against earlier ones.
    pub(super) newest: f64,
    /// Servers are planned to be so busy: 1 in the paper.
    pub(super) utilisation: f64,
}

/// Demand of a class on the servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) rank: u8,
    pub(super) offered_rps: f64,
    pub(super) guaranteed_rps: f64,
    /// Service time of a request, seconds.
    pub(super) cost_s: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: Duration::from_secs(1), newest: 0.7, utilisation: 0.95 }
    }
}

impl Threshold {
    pub(super) fn new(settings: Settings, classes: usize) -> Self {
        Self {
            settings,
            offered: vec![0; classes],
            began: None,
            rates_rps: None,
            shares: vec![u32::MAX; classes],
            servers: None,
            span_s: 0.0,
            oldest: Duration::ZERO,
        }
    }

    pub(super) fn observe(&mut self, sample: &Sample) {
        self.began.get_or_insert(sample.from);
        self.span_s += sample.to.saturating_since(sample.from).as_secs_f64();
        let oldest_us = sample.classes.iter().map(|counts| counts.oldest_held_us).max();
        self.oldest = Duration::from_micros(oldest_us.unwrap_or(0));
        for (offered, counts) in self.offered.iter_mut().zip(&sample.classes) {
            *offered += counts.offered;
        }
    }

    /// Number of servers, from the number known at first and a limit on requests in flight.
    ///
    /// Admission by share alone keeps the origin from showing what it can do: a rule that believes in too few
    /// servers would do so for ever. So a little more is let in for as long as no request waits long for room
    /// under the limit, and less as soon as one does: it is the limit that protects.
    pub(super) fn find_servers(&mut self, known: f64, limit: u32, target: Duration) -> f64 {
        let change = if self.oldest > target / WAITING_PART { SERVERS_LESS } else { SERVERS_MORE };
        let servers = self.servers.unwrap_or(known) * libm::exp(change * self.span_s);
        self.span_s = 0.0;
        *self.servers.insert(servers.clamp(SERVERS_LEAST, f64::from(limit).max(SERVERS_LEAST)))
    }

    /// Each class's share; recomputed when a period is over. The claims' own rates are not used.
    pub(super) fn shares(&mut self, now: Instant, servers: f64, claims: &[Claim]) -> &[u32] {
        let began = *self.began.get_or_insert(now);
        let span = now.saturating_since(began);
        if span >= self.settings.period && !span.is_zero() {
            let last = self.offered.iter().map(|&count| count as f64 / span.as_secs_f64());
            let rates_rps: Vec<f64> = match &self.rates_rps {
                Some(before) => before
                    .iter()
                    .zip(last)
                    .map(|(old, new)| old + (new - old) * self.settings.newest)
                    .collect(),
                None => last.collect(),
            };
            let claims: Vec<Claim> = claims
                .iter()
                .zip(&rates_rps)
                .map(|(claim, &offered_rps)| Claim { offered_rps, ..*claim })
                .collect();
            self.shares = shares(servers * self.settings.utilisation, &claims);
            self.rates_rps = Some(rates_rps);
            self.offered.fill(0);
            self.began = Some(now);
        }
        &self.shares
    }
}

/// Of 2³² requests of each class beyond its guarantee, the number that may go so that these servers suffice.
fn shares(servers: f64, claims: &[Claim]) -> Vec<u32> {
    let set_aside = |claim: &Claim| claim.offered_rps.min(claim.guaranteed_rps) * claim.cost_s;
    let mut left = servers - claims.iter().map(set_aside).sum::<f64>();
    let mut of_rank = vec![0u32; claims.iter().map(|claim| usize::from(claim.rank) + 1).max().unwrap_or(0)];
    for (rank, share) in of_rank.iter_mut().enumerate() {
        let own = claims.iter().filter(|claim| usize::from(claim.rank) == rank);
        let wanted: f64 =
            own.map(|claim| (claim.offered_rps - claim.guaranteed_rps).max(0.0) * claim.cost_s).sum();
        *share = match left {
            left if left <= 0.0 => 0,
            left if wanted <= left => u32::MAX,
            // Below 1: the cast rounds down to at most 2³² − 1.
            left => ((left / wanted) * TWO_TO_32) as u32,
        };
        left -= wanted;
    }
    claims.iter().map(|claim| of_rank[usize::from(claim.rank)]).collect()
}

/// A wait longer than this part of the target is long.
const WAITING_PART: u32 = 3;
/// Per second: while no request waits long, and while one does.
const SERVERS_MORE: f64 = 0.2;
const SERVERS_LESS: f64 = -0.1;
/// An origin that serves less than one request in ten times its service time is not served by a share.
const SERVERS_LEAST: f64 = 0.1;
const TWO_TO_32: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use super::super::sample::ClassCounts;
    use super::*;
    use proptest::prelude::*;

    fn claim(rank: u8, offered_rps: f64, guaranteed_rps: f64, cost_s: f64) -> Claim {
        Claim { rank, offered_rps, guaranteed_rps, cost_s }
    }

    fn percent(shares: &[u32]) -> Vec<u64> {
        shares.iter().map(|&share| (u64::from(share) * 100 + (1 << 31)) >> 32).collect()
    }

    #[test]
    fn classes_are_let_in_as_far_as_servers_reach() {
        let claims = [claim(0, 200.0, 0.0, 0.01), claim(1, 100.0, 20.0, 0.01), claim(2, 100.0, 0.0, 0.01)];
        // 3 servers: 2 for gold, 0.2 are set aside for silver, 0.8 left for silver's other 0.8: all. Bronze:
        // nothing.
        assert_eq!(percent(&shares(3.0, &claims)), [100, 100, 0]);
        assert_eq!(percent(&shares(2.6, &claims)), [100, 50, 0]);
        assert_eq!(shares(9.0, &claims), [u32::MAX; 3]);
        assert_eq!(shares(0.0, &claims), [0; 3]);
        let equal = [claim(0, 100.0, 0.0, 0.01), claim(0, 300.0, 0.0, 0.01)];
        assert_eq!(percent(&shares(2.0, &equal)), [50; 2]);
        assert_eq!(shares(2.0, &[claim(0, 1e6, 0.0, 0.0)]), [u32::MAX], "unknown service times");
        assert!(shares(1.0, &[]).is_empty());
    }

    #[test]
    fn rates_are_those_of_whole_periods() {
        let mut threshold = Threshold::new(Settings { newest: 0.5, ..Settings::default() }, 1);
        let mut tick = |ms: u64, offered| {
            let (from, to) = (Instant::from_millis(ms - 500), Instant::from_millis(ms));
            let classes = vec![ClassCounts { offered, ..ClassCounts::default() }];
            threshold.observe(&Sample { from, to, classes, ..Sample::default() });
            percent(threshold.shares(to, 1.0 / 0.95, &[claim(0, 0.0, 0.0, 0.01)]))[0]
        };
        assert_eq!([tick(500, 100), tick(1_000, 100)], [100, 50]);
        // 600 a second now, 400 with the period before.
        assert_eq!([tick(1_500, 300), tick(2_000, 300)], [50, 25]);
    }

    proptest! {
        /// Admitted requests keep no more servers busy than there are, and none is let in before a dearer
        /// one.
        #[test]
        fn shares_fit_and_go_by_rank(
            servers in 0.0f64..100.0,
            all in proptest::collection::vec((0u8..4, 0.0f64..1e3, 0.0f64..100.0, 0.0f64..0.5), 0..16),
        ) {
            let claims: Vec<Claim> = all.iter().map(|&(r, o, g, c)| claim(r, o, g, c)).collect();
            let shares = shares(servers, &claims);
            let (mut beyond, mut guaranteed) = (0.0, 0.0);
            for (claim, &share) in claims.iter().zip(&shares) {
                let part = if share == u32::MAX { 1.0 } else { f64::from(share) / TWO_TO_32 };
                beyond += (claim.offered_rps - claim.guaranteed_rps).max(0.0) * claim.cost_s * part;
                guaranteed += claim.offered_rps.min(claim.guaranteed_rps) * claim.cost_s;
            }
            prop_assert!(beyond <= (servers - guaranteed).max(0.0) * (1.0 + 1e-9) + 1e-9);
            for (one, &share) in claims.iter().zip(&shares) {
                for (other, &others) in claims.iter().zip(&shares) {
                    let is_dearer = one.rank < other.rank;
                    prop_assert!(!is_dearer || share == u32::MAX || others == 0);
                    prop_assert!(one.rank != other.rank || share == others);
                }
            }
        }
    }
}
