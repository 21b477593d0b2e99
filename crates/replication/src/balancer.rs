//! Choice of a service's server for a request: the less loaded of two drawn at random.
//!
//! ```text
//! draw two usable servers; take the one with the lower in-flight/share; where both are equal, with the lower q/share
//!     in-flight: requests of all workers at the server,   q = Σ e^(−age/1 s) of this worker's own choices
//! ```
//!
//! Why requests in flight first: they follow a server that becomes slow, or hangs, within one response time,
//! without any report. Why the choices behind: at low load nothing is in flight anywhere, and a share (a
//! fresh server's, a learned one) would mean nothing. A server whose share is small is never starved: with
//! nothing in flight it always has the lower part of requests in flight.
//!
//! Two choices keep the longest queue within O(log log n) of the mean (Mitzenmacher 2001) without the herd
//! that "always the least busy" sends to a server which has just come back.
//!
//! Fast failures make a server look idle; [`ServerPool`](crate::ServerPool) leaves such a server out. Cost:
//! O(1) and a scan of one word of bits; no allocation, no lock.

use crate::distribution::{COUNTER_TAU, two_of};
use crate::servers::ServerIndex;
use core::cmp::Ordering;
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Instant, Rng};

/// A server's load at the moment of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerUse {
    /// Requests in flight at it, of all workers.
    pub in_flight: u32,
    /// Its share; zero counts as the least.
    pub share: u32,
}

/// One worker's choices.
#[derive(Clone, Debug)]
pub struct Balancer {
    counters: DecayedCounters,
}

impl Balancer {
    /// For this many servers.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self { counters: DecayedCounters::new(servers, COUNTER_TAU) }
    }

    /// One of the servers whose bits are set in `candidates`, or none if there are none. The choice is
    /// counted.
    ///
    /// ```
    /// use flashweir_core::{Instant, Rng};
    /// use flashweir_replication::{Balancer, ServerUse};
    /// let mut balancer = Balancer::new(2);
    /// let in_flight = [9, 2];
    /// let load = |server: u16| ServerUse { in_flight: in_flight[usize::from(server)], share: 1_024 };
    /// assert_eq!(balancer.choose(Instant::ZERO, 0b11, load, &mut Rng::new(1)), Some(1));
    /// ```
    pub fn choose(
        &mut self,
        now: Instant,
        candidates: u64,
        load: impl Fn(ServerIndex) -> ServerUse,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let chosen = match candidates.count_ones() {
            0 => return None,
            1 => nth_set_bit(candidates, 0),
            count => {
                let (one, other) = two_of(count.into(), rng);
                let (one, other) = (nth_set_bit(candidates, one), nth_set_bit(candidates, other));
                if self.compare(other, load(other), one, load(one)) == Ordering::Less { other } else { one }
            }
        };
        self.counters.add(now, usize::from(chosen));
        Some(chosen)
    }

    /// Comparison of two servers' loads. Fractions are compared by products: no division.
    fn compare(&self, one: ServerIndex, a: ServerUse, other: ServerIndex, b: ServerUse) -> Ordering {
        let (a_share, b_share) = (u64::from(a.share.max(1)), u64::from(b.share.max(1)));
        let in_flight = (u64::from(a.in_flight) * b_share).cmp(&(u64::from(b.in_flight) * a_share));
        in_flight.then_with(|| {
            let recent = |server: ServerIndex| u128::from(self.counters.scaled(usize::from(server)));
            (recent(one) * u128::from(b_share)).cmp(&(recent(other) * u128::from(a_share)))
        })
    }
}

fn nth_set_bit(mut bits: u64, nth: u64) -> ServerIndex {
    for _ in 0..nth {
        bits &= bits - 1;
    }
    bits.trailing_zeros() as ServerIndex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::SHARE_ONE;
    use flashweir_core::Duration;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn two_choices_spread_requests_in_flight() {
        let (mut in_flight, mut balancer, mut rng) = ([0u32; 5], Balancer::new(5), Rng::new(3));
        for _ in 0..1_000 {
            let load =
                |server: u16| ServerUse { in_flight: in_flight[usize::from(server)], share: SHARE_ONE };
            let chosen = balancer.choose(Instant::ZERO, 0b11111, load, &mut rng).unwrap();
            in_flight[usize::from(chosen)] += 1;
        }
        let spread = in_flight.iter().max().unwrap() - in_flight.iter().min().unwrap();
        assert!(spread <= 6, "{in_flight:?}");
    }

    /// Goal: where nothing is in flight, requests are spread by shares. Method: 10,000 choices at intervals
    /// of 10 ms among two and four servers.
    #[test]
    fn an_idle_service_is_balanced_by_shares() {
        for servers in [2u16, 4] {
            let (mut balancer, mut rng, mut now) =
                (Balancer::new(servers.into()), Rng::new(5), Instant::ZERO);
            let share = |server: u16| if server == 0 { SHARE_ONE / 10 } else { SHARE_ONE };
            let mut chosen = [0u32; 4];
            for _ in 0..10_000 {
                now += Duration::from_millis(10);
                let load = |server| ServerUse { in_flight: 0, share: share(server) };
                let server = balancer.choose(now, (1 << servers) - 1, load, &mut rng).unwrap();
                chosen[usize::from(server)] += 1;
            }
            let fair = 10_000.0 * 0.1 / (f64::from(servers - 1) + 0.1);
            let first = f64::from(chosen[0]);
            assert!(first > 0.7 * fair && first < 1.3 * fair, "{chosen:?}, expected {fair}");
            let others = &chosen[1..usize::from(servers)];
            assert!(others.iter().max().unwrap() - others.iter().min().unwrap() < 600, "{chosen:?}");
        }
    }

    /// Goal: a server that hangs holds few requests. Method: requests that end after ten further ones, but
    /// for those at server 0.
    #[test]
    fn a_server_that_hangs_gets_as_many_as_the_others_have_in_flight() {
        let (mut balancer, mut rng) = (Balancer::new(4), Rng::new(7));
        let (mut in_flight, mut running) = ([0u32; 4], alloc::collections::VecDeque::new());
        for step in 0..5_000u64 {
            let load =
                |server: u16| ServerUse { in_flight: in_flight[usize::from(server)], share: SHARE_ONE };
            let chosen = balancer.choose(Instant::from_millis(step), 0b1111, load, &mut rng).unwrap();
            in_flight[usize::from(chosen)] += 1;
            if chosen != 0 {
                running.push_back(chosen);
            }
            if running.len() > 10 {
                let ended: u16 = running.pop_front().unwrap();
                in_flight[usize::from(ended)] -= 1;
            }
        }
        assert!(in_flight[0] <= 8, "{in_flight:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_choice_is_a_candidate_and_never_the_busier_of_two(candidates: u64, seed: u64) {
            let load = |server| ServerUse { in_flight: u32::from(server), share: SHARE_ONE };
            let chosen = Balancer::new(64).choose(Instant::ZERO, candidates, load, &mut Rng::new(seed));
            match chosen {
                None => prop_assert_eq!(candidates, 0),
                Some(server) => {
                    prop_assert_eq!(candidates >> server & 1, 1);
                    // The index is the load here, so the last candidate always loses against its rival.
                    let is_last = u32::from(server) == 63 - candidates.leading_zeros();
                    prop_assert!(candidates.count_ones() == 1 || !is_last);
                }
            }
        }
    }
}
