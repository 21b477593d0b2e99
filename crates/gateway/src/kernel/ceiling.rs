//! Conversion of ceilings on requests to one on new connections.
//!
//! The kernel judges a SYN: it knows from where and to which port, and neither host nor path nor class nor
//! person. Whom it refuses, it refuses blindly. So it is to refuse only what would be refused anyway and only
//! costs:
//!
//! ```text
//! ceiling = headroom × admissible rate of the pipeline × connections per request
//! ```
//!
//! **Headroom.** The gateway's own gates, which know classes and people, still choose among more than fits:
//! twice as much where all requests are alike and the kernel chooses no worse than they would, eight times
//! where there are classes or several services to choose among. Up to a crowd of that size no important
//! request is refused blindly; in a larger one an important client that opens a new connection is refused
//! with the chance that all have, 1 − ceiling / offered. Better cannot be had from a SYN, but by address:
//! preferred networks, and the proxies whose word on client addresses is trusted, who speak for many, are
//! always let in. Who is connected is never touched.
//!
//! **Connections per request.** Measured over the last second among those let in: who keeps a connection for
//! many requests makes it small. While the kernel refuses, the rule closes a loop with one resting point:
//! there the gateway is offered headroom × useful rate, including what comes on connections that are open
//! already. Bounds keep the loop from starving newcomers (a crowd of one request each behind people who stay)
//! and from opening to connections that ask for nothing.
//!
//! **Open** while fewer connections come than the ceiling allows, or while no stage refuses: hot spots of
//! NEWS count as open, since a SYN does not say for which host it is. A ceiling that only a detector in
//! shadow asks for is a ceiling in shadow.
//!
//! Cold start: until ten requests were seen in a second, each is taken to come on its own connection. Cost: a
//! few additions for each rank of each service.

use flashweir_admission::flash_crowd::Plan;
use flashweir_admission::pipeline::{AdmissibleRate, ServiceDemand, StageName, admissible_rate};
use flashweir_core::{Duration, Rate, Reason};
use flashweir_kernel::gate::{Ceiling, TIERS, Tiers};
use std::sync::Arc;

/// Inputs of the ceiling: rates over about the last second, and the limits of the plans in force.
#[derive(Clone, Debug)]
pub(crate) struct CeilingInputs {
    /// The plan of NEWS.
    pub(crate) news: Arc<Plan>,
    /// NEWS only records.
    pub(crate) news_is_shadow: bool,
    /// Each service.
    pub(crate) services: Vec<ServiceDemand>,
    /// Classes differ in importance.
    pub(crate) has_ranks: bool,
    /// There are classes or services to choose among.
    pub(crate) has_choice: bool,
    /// Connections let in.
    pub(crate) accepted_per_s: f64,
    /// Requests that came on connections, new or old.
    pub(crate) requests_per_s: f64,
    /// Attempts to connect that arrived at the kernel's gate, without retransmissions (unique offered).
    pub(crate) arriving_per_s: f64,
    /// The kernel only records, for every client.
    pub(crate) shadow: bool,
}

/// A ceiling, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decision {
    /// New connections per second.
    pub(crate) connections_per_s: f64,
    /// Requests per second that lead to an answer.
    pub(crate) admissible: AdmissibleRate,
    /// The limit that binds, by the gateway's own reason. A sentry's has one name here: a SYN has no class
    /// that could refine it.
    pub(crate) reason: Reason,
    /// Only record.
    pub(crate) shadow: bool,
}

/// The ceiling on new connections; `None` lets everything in.
pub(crate) fn decide(inputs: &CeilingInputs) -> Option<Decision> {
    let admissible =
        |with_shadow| admissible_rate(&inputs.news, inputs.news_is_shadow, &inputs.services, with_shadow);
    let enforced = admissible(false).map(|rate| (rate, inputs.shadow));
    let (admissible, shadow) = enforced.or_else(|| Some((admissible(true)?, true)))?;
    let connections_per_s = headroom(inputs) * admissible.total_rps * connections_per_request(inputs);
    let reason = match admissible.stage {
        StageName::FlashCrowd => Reason::FlashCrowd,
        StageName::Bounds
        | StageName::Ladder
        | StageName::Gapping
        | StageName::Sentry
        | StageName::Upstream => Reason::Capacity,
    };
    let decision = Decision { connections_per_s, admissible, reason, shadow };
    (inputs.arriving_per_s > connections_per_s).then_some(decision)
}

/// As offered beyond what is useful.
pub(crate) fn headroom(inputs: &CeilingInputs) -> f64 {
    if inputs.has_choice { HEADROOM_TO_CHOOSE } else { HEADROOM }
}

/// Connections that come for each request, within bounds.
pub(crate) fn connections_per_request(inputs: &CeilingInputs) -> f64 {
    if inputs.requests_per_s < REQUESTS_TO_JUDGE_PER_S {
        return 1.0;
    }
    (inputs.accepted_per_s / inputs.requests_per_s)
        .clamp(CONNECTIONS_PER_REQUEST_LEAST, CONNECTIONS_PER_REQUEST_MOST)
}

/// The ceiling for the kernel: a quarter of a second's connections may come at once, ten at the least, as at
/// the gateway's own gate.
pub(crate) fn in_kernel(connections_per_s: f64) -> Ceiling {
    // Saturates; the kernel caps it further.
    let burst = (connections_per_s / 4.0).max(10.0) as u32;
    Ceiling { rate: Rate::from_per_second(connections_per_s), burst }
}

/// The admissible rate for as many tiers of the kernel, the most important first: that of each rank of
/// classes goes to the tier of the same rank, and what is beyond the last tier to the last. Where all classes
/// are of one rank their rate says nothing of ranks of connections: all of it is the last tier's, so that the
/// layers before it stay small.
pub(crate) fn by_tier(admissible: &AdmissibleRate, has_ranks: bool, tiers: usize) -> Vec<f64> {
    let mut rates = vec![0.0; tiers.clamp(1, TIERS)];
    let last = rates.len() - 1;
    if !has_ranks || last == 0 {
        rates[last] = admissible.total_rps;
        return rates;
    }
    for (rank, rps) in admissible.by_rank_rps.iter().enumerate() {
        rates[rank.min(last)] += rps;
    }
    rates
}

/// The ceilings of the kernel's plan by rank, from what the pipeline can use of each rank.
///
/// `admissible_rps` are requests per second for each rank by itself (not cumulative), rank 0, the most
/// important, first; what is beyond the last tier of the kernel is added to the last tier. Each tier brings
///
/// ```text
/// rate(r) = headroom × admissible_rps[r] × connections per request      (connections per second)
/// ```
///
/// and the kernel gives all rates together to the most important connections that come: rank r is refused
/// only if ranks 0 to r together exceed the whole. So a rank that is given too little takes from the less
/// important ones and never waits for a better number, and what it leaves is theirs.
///
/// * No rank, or one without a limit (infinite): no ceiling, everything is admitted.
/// * Numbers that are none, or below zero, count as 0. A whole of 0 is raised to one connection per second, in the
///   least important tier: without any connection nothing is measured, and a limit of 0 would stay.
/// * Bursts: a quarter of a second's connections of the rank, at least what [`Tiers::under`] reserves.
///
/// One rank gives exactly [`in_kernel`] of its rate. Cost: a few operations for each rank.
pub(crate) fn tier_ceilings(admissible_rps: &[f64], headroom: f64, connections_per_request: f64) -> Tiers {
    let is_open = admissible_rps.is_empty() || admissible_rps.contains(&f64::INFINITY);
    if is_open {
        return Tiers::OPEN;
    }
    let count = admissible_rps.len().min(TIERS);
    let mut connections_per_s = [0.0; TIERS];
    for (rank, rps) in admissible_rps.iter().enumerate() {
        // Of a number that is none, the maximum is 0.
        connections_per_s[rank.min(count - 1)] += (headroom * rps * connections_per_request).max(0.0);
    }
    if connections_per_s.iter().sum::<f64>() <= 0.0 {
        connections_per_s[count - 1] = CONNECTIONS_MIN_PER_S;
    }
    let least = Tiers::under(in_kernel(connections_per_s.iter().sum()), count);
    let last = in_kernel(connections_per_s[count - 1]);
    let mut ceilings = [last; TIERS];
    for ((ceiling, least), rate) in
        ceilings[..count - 1].iter_mut().zip(least.ceilings()).zip(connections_per_s)
    {
        let burst = ((rate / 4.0) as u32).max(least.burst);
        *ceiling = Ceiling { rate: Rate::from_per_second(rate), burst };
    }
    // As many as the kernel has at most.
    Tiers::new(&ceilings[..count]).unwrap_or_default()
}

/// `Retry-After` of refused connections: as many seconds as there are arrivals for each that fits, rounded up
/// to a power of two so that it changes seldom, at most half a minute.
pub(crate) fn retry_after(arriving_per_s: f64, connections_per_s: f64) -> Duration {
    let crowd = (arriving_per_s / connections_per_s.max(1e-3)).clamp(1.0, RETRY_AFTER_S_MOST);
    let seconds = (crowd as u64).next_power_of_two();
    Duration::from_secs(seconds.min(RETRY_AFTER_S_MOST as u64))
}

/// Headroom if all requests are alike: the gates keep a queue full and a margin for bursts, and refusing as
/// much again costs the gateway a few per cent of what it serves.
const HEADROOM: f64 = 2.0;
/// Headroom if gates choose: with an eighth of the arrivals useful, even a class of a tenth of them is
/// complete.
const HEADROOM_TO_CHOOSE: f64 = 8.0;
/// Below this a ratio is noise.
const REQUESTS_TO_JUDGE_PER_S: f64 = 10.0;
/// Browsers keep a connection for about ten requests; newcomers must not be charged for those who stay
/// longer.
const CONNECTIONS_PER_REQUEST_LEAST: f64 = 0.1;
/// Browsers open a spare one; who opens more asks for nothing.
const CONNECTIONS_PER_REQUEST_MOST: f64 = 2.0;
/// Enough to learn from.
const CONNECTIONS_MIN_PER_S: f64 = 1.0;
/// As at the gateway's own gates.
const RETRY_AFTER_S_MOST: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_admission::flash_crowd::Limit;
    use flashweir_core::limits::CLASSES;
    use proptest::prelude::*;

    fn offered(by_rank_rps: &[f64]) -> [f64; CLASSES] {
        std::array::from_fn(|rank| by_rank_rps.get(rank).copied().unwrap_or(0.0))
    }

    fn news(rps: f64) -> Arc<Plan> {
        Arc::new(Plan { limit: Limit::All(Rate::from_per_second(rps)), ..Plan::open(1) })
    }

    /// Ten times as many as the origin can do, each on its own connection, and the kernel still open.
    fn crowd() -> CeilingInputs {
        CeilingInputs {
            news: Arc::new(Plan::open(1)),
            news_is_shadow: false,
            services: vec![ServiceDemand {
                offered_rps: offered(&[1_000.0]),
                refused_rps: 900.0,
                capacity_rps: 100.0,
                is_shadow: false,
            }],
            has_ranks: false,
            has_choice: false,
            accepted_per_s: 1_000.0,
            requests_per_s: 1_000.0,
            arriving_per_s: 1_000.0,
            shadow: false,
        }
    }

    fn rate(inputs: &CeilingInputs) -> Option<f64> {
        decide(inputs).map(|decision| decision.connections_per_s)
    }

    #[test]
    fn twice_what_fits_comes_in_and_eight_times_where_there_is_a_choice() {
        assert_eq!(rate(&crowd()), Some(200.0));
        assert_eq!(rate(&CeilingInputs { has_choice: true, ..crowd() }), Some(800.0));
    }

    #[test]
    fn open_while_nobody_refuses_and_while_fewer_come() {
        let mut content = crowd();
        content.services[0].refused_rps = 0.0;
        assert_eq!(rate(&content), None);
        assert_eq!(rate(&CeilingInputs { arriving_per_s: 200.0, ..crowd() }), None);
        let mut unknown = crowd();
        unknown.services[0].capacity_rps = 0.0;
        assert_eq!(rate(&unknown), None);
    }

    #[test]
    fn the_lower_of_both_ceilings_counts_and_services_that_refuse_nobody_keep_what_they_have() {
        assert_eq!(rate(&CeilingInputs { news: news(50.0), ..crowd() }), Some(100.0));
        assert_eq!(rate(&CeilingInputs { news: news(150.0), ..crowd() }), Some(200.0));
        let mut two = crowd();
        two.services.push(ServiceDemand {
            offered_rps: offered(&[30.0]),
            capacity_rps: 500.0,
            ..ServiceDemand::default()
        });
        assert_eq!(rate(&two), Some(2.0 * 130.0));
    }

    #[test]
    fn the_reason_is_that_of_the_limit_that_counts() {
        let reason = |inputs: &CeilingInputs| decide(inputs).map(|decision| decision.reason);
        assert_eq!(reason(&crowd()), Some(Reason::Capacity));
        assert_eq!(reason(&CeilingInputs { news: news(50.0), ..crowd() }), Some(Reason::FlashCrowd));
        assert_eq!(reason(&CeilingInputs { news: news(150.0), ..crowd() }), Some(Reason::Capacity));
        let in_shadow = CeilingInputs { news: news(50.0), news_is_shadow: true, ..crowd() };
        assert_eq!(reason(&in_shadow), Some(Reason::Capacity));
        let mut content = crowd();
        content.services[0].refused_rps = 0.0;
        assert_eq!(reason(&CeilingInputs { news: news(50.0), ..content }), Some(Reason::FlashCrowd));
    }

    #[test]
    fn who_only_watches_has_a_ceiling_in_shadow() {
        let mut inputs = crowd();
        inputs.services[0].is_shadow = true;
        assert_eq!(
            decide(&inputs).map(|decision| (decision.connections_per_s, decision.shadow)),
            Some((200.0, true))
        );
        // A ceiling that is meant wins over one that is not, also if it is higher.
        inputs.news = news(300.0);
        assert_eq!(
            decide(&inputs).map(|decision| (decision.connections_per_s, decision.shadow)),
            Some((600.0, false))
        );
        assert!(decide(&CeilingInputs { shadow: true, ..crowd() }).is_some_and(|decision| decision.shadow));
    }

    /// People who stay send 50 requests a second on 5 connections; each of the crowd opens one for one
    /// request. However wrong the first ceiling, the gateway ends up being offered twice its capacity.
    #[test]
    fn the_loop_over_connections_per_request_comes_to_rest_where_the_headroom_is() {
        for begin in [5.0, 1_000.0] {
            let mut let_in = begin;
            for _ in 0..40 {
                let offered_rps = 50.0 + let_in;
                let mut inputs = crowd();
                inputs.services[0].offered_rps = offered(&[offered_rps]);
                let inputs =
                    CeilingInputs { accepted_per_s: 5.0 + let_in, requests_per_s: offered_rps, ..inputs };
                let_in = rate(&inputs).expect("a ceiling") - 5.0;
            }
            let offered_rps = 50.0 + let_in;
            assert!((offered_rps - 200.0).abs() < 1.0, "from {begin}: {offered_rps}");
        }
    }

    #[test]
    fn newcomers_are_not_shut_out_by_those_who_stay() {
        // A thousand requests a second on ten old connections, no new one let in so far.
        let inputs = CeilingInputs { accepted_per_s: 0.0, ..crowd() };
        assert_eq!(rate(&inputs), Some(0.1 * 200.0));
        // And connections without requests do not open the door.
        assert_eq!(
            rate(&CeilingInputs { accepted_per_s: 9e9, arriving_per_s: 9e9, ..crowd() }),
            Some(2.0 * 200.0)
        );
    }

    #[test]
    fn a_refused_client_is_told_to_come_back_the_later_the_larger_the_crowd() {
        let seconds = |arriving, fitting| retry_after(arriving, fitting).as_secs();
        assert_eq!([seconds(100.0, 100.0), seconds(300.0, 100.0), seconds(900.0, 100.0)], [1, 4, 16]);
        assert_eq!([seconds(9e9, 1.0), seconds(f64::NAN, 0.0), seconds(5.0, 0.0)], [30, 1, 30]);
    }

    fn rates(tiers: &Tiers) -> Vec<f64> {
        tiers.ceilings().iter().map(|ceiling| ceiling.rate.per_second()).collect()
    }

    #[test]
    fn each_rank_brings_what_the_pipeline_can_use_of_it_and_headroom() {
        let tiers = tier_ceilings(&[80.0, 15.0, 5.0], 2.0, 0.5);
        assert_eq!(rates(&tiers), [80.0, 15.0, 5.0]);
        let bursts: Vec<_> = tiers.ceilings().iter().map(|ceiling| ceiling.burst).collect();
        assert_eq!(
            bursts,
            [20, 10, 10],
            "a quarter of a second, ten at least where the whole fills them fast"
        );
        let with_choice = tier_ceilings(&[80.0, 15.0, 5.0], HEADROOM_TO_CHOOSE, 1.0);
        assert_eq!(with_choice.total_rate(), Some(Rate::from_per_second(800.0)));
    }

    #[test]
    fn ranks_of_classes_become_tiers_and_one_rank_is_all_the_last_tiers() {
        let mut inputs = crowd();
        inputs.services[0].offered_rps = offered(&[20.0, 30.0, 950.0]);
        let decision = decide(&inputs).expect("a ceiling");
        assert_eq!(by_tier(&decision.admissible, true, 4), [20.0, 30.0, 50.0, 0.0]);
        assert_eq!(by_tier(&decision.admissible, true, 2), [20.0, 80.0]);
        assert_eq!(by_tier(&decision.admissible, true, 1), [100.0]);
        assert_eq!(by_tier(&decision.admissible, false, 3), [0.0, 0.0, 100.0]);
        // Beyond what is offered a ceiling of NEWS is the last tier's.
        inputs.services[0].refused_rps = 0.0;
        inputs.arriving_per_s = 9e9;
        let decision = decide(&CeilingInputs { news: news(1_500.0), ..inputs }).expect("a ceiling");
        assert_eq!(by_tier(&decision.admissible, true, 2), [20.0, 1_480.0]);
    }

    #[test]
    fn one_rank_gives_the_one_ceiling() {
        for useful in [0.01, 1.0, 3.0, 100.0, 1e5, 1e12] {
            assert_eq!(tier_ceilings(&[useful], 2.0, 0.7), Tiers::one(in_kernel(2.0 * useful * 0.7)));
        }
    }

    #[test]
    fn ranks_beyond_the_last_tier_are_added_to_it() {
        let tiers = tier_ceilings(&[1.0; 12], 1.0, 1.0);
        assert_eq!(rates(&tiers), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0]);
    }

    #[test]
    fn numbers_that_are_none_close_no_door_and_no_limit_opens_it() {
        assert!(tier_ceilings(&[], 2.0, 1.0).is_open());
        assert!(tier_ceilings(&[5.0, f64::INFINITY], 2.0, 1.0).is_open());
        assert_eq!(rates(&tier_ceilings(&[f64::NAN, -7.0, 30.0], 2.0, 1.0)), [0.0, 0.0, 60.0]);
        assert_eq!(rates(&tier_ceilings(&[0.0, 0.0], 2.0, 1.0)), [0.0, 1.0]);
        assert_eq!(rates(&tier_ceilings(&[30.0], f64::NAN, 1.0)), [1.0]);
    }

    proptest! {
        /// For any rates of the pipeline, the whole is the sum of the ranks with headroom, and no layer keeps
        /// the last rank waiting for more than half a second from an empty bucket, where that much comes in
        /// half a second at all.
        #[test]
        fn ceilings_by_rank_add_up(
            admissible_rps in proptest::collection::vec(0.001f64..1e5, 1..12), headroom in 1.0f64..8.0,
        ) {
            let tiers = tier_ceilings(&admissible_rps, headroom, 0.5);
            let whole = headroom * 0.5 * admissible_rps.iter().sum::<f64>();
            let total = tiers.total_rate().expect("a ceiling").per_second();
            prop_assert!((total - whole).abs() < 0.01, "{total} of {whole}");
            let (_, before) = tiers.ceilings().split_last().expect("a tier");
            let reserved: u32 = before.iter().map(|ceiling| ceiling.burst).sum();
            prop_assert!(f64::from(reserved) <= (total / 2.0).max(before.len() as f64), "{reserved} of {total}");
        }

        /// For any measurements, the ceiling is a number above zero and below the arrivals.
        #[test]
        fn a_ceiling_is_sane(
            rates in proptest::array::uniform6(0.0f64..1e7), has_choice: bool, capacity_rps in 0.1f64..1e6,
        ) {
            let [offered_rps, refused_rps, accepted_per_s, requests_per_s, arriving_per_s, news_rps] = rates;
            let offered_rps = offered(&[offered_rps + 0.1]);
            let service = ServiceDemand { offered_rps, refused_rps, capacity_rps, is_shadow: false };
            let inputs = CeilingInputs {
                news: news(news_rps + 0.1), services: vec![service], has_choice,
                accepted_per_s, requests_per_s, arriving_per_s, ..crowd()
            };
            if let Some(rate) = rate(&inputs) {
                prop_assert!(rate > 0.0 && rate < arriving_per_s);
                prop_assert!(in_kernel(rate).burst >= 10);
                prop_assert!((1..=30).contains(&retry_after(arriving_per_s, rate).as_secs()));
            }
        }
    }
}
