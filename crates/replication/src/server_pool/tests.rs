//! Goal: which servers are used, and how much. Method: calls with literal times.

use super::*;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn pool(servers: usize) -> ServerPool {
    ServerPool::new(at(0), servers, PoolSettings::default()).expect("valid settings")
}

fn end_probes(pool: &mut ServerPool, ms: u64, outcome: impl Fn(ServerIndex) -> ProbeOutcome) -> usize {
    let due = pool.probes_due(at(ms), usize::MAX);
    due.iter().for_each(|&server| pool.probed(at(ms), server, outcome(server)));
    due.len()
}

const CONNECTED: ProbeOutcome = ProbeOutcome::Connected;
const GONE: ProbeOutcome = ProbeOutcome::NoConnection;

/// Goal: of eight servers seven are absent at the start; each is used with its first probe after it came.
#[test]
fn absent_servers_are_left_out_at_once_and_used_when_they_come() {
    let mut pool = pool(8);
    let here = |ms: u64, server: ServerIndex| u64::from(server) * 10_000 <= ms;
    for tick in 0..800u64 {
        let ms = tick * 100;
        end_probes(&mut pool, ms, |server| if here(ms, server) { CONNECTED } else { GONE });
        pool.refresh(at(ms), &[ServerCounts::default(); 8]);
        if ms < 500 {
            continue;
        }
        for server in 0..8u16 {
            let is_used = pool.candidates(at(ms)) >> server & 1 == 1;
            let came_ms = u64::from(server) * 10_000;
            assert!(is_used || ms < came_ms + 400, "{server} at {ms}");
            assert!(!is_used || ms >= came_ms, "{server} at {ms}");
        }
    }
    let events = pool.events();
    assert_eq!((events.ejected, events.returned), ([7, 0, 0, 0], 7));
    assert!(pool.is_settled(at(90_000)));
    assert_eq!(end_probes(&mut pool, 90_000, |_| CONNECTED), 0, "servers that work are left alone");
}

#[test]
fn a_server_that_returns_starts_slowly() {
    let mut pool = pool(2);
    for ms in [0, 300] {
        end_probes(&mut pool, ms, |server| if server == 0 { GONE } else { CONNECTED });
    }
    assert_eq!(pool.cause(at(300), 0), Some(OutCause::Unreachable));
    end_probes(&mut pool, 1_000, |_| CONNECTED);
    for (ms, share) in [(1_000, 102), (3_500, 512), (6_000, 1_024)] {
        pool.refresh(at(ms), &[ServerCounts::default(); 2]);
        assert_eq!(pool.shares(), [share, 1_024]);
    }
}

#[test]
fn where_none_is_usable_the_reachable_ones_are_used_and_then_all() {
    let mut pool = pool(3);
    let down = |pool: &mut ServerPool, server, outcome| {
        (0..3).for_each(|_| pool.probed(at(10), server, outcome));
    };
    down(&mut pool, 0, GONE);
    assert_eq!(pool.candidates(at(10)), 0b110);
    down(&mut pool, 1, ProbeOutcome::BadAnswer);
    down(&mut pool, 2, GONE);
    assert_eq!(pool.candidates(at(10)), 0b010);
    down(&mut pool, 1, GONE);
    pool.probed(at(20), 1, GONE);
    assert_eq!(pool.candidates(at(20)), 0b111);
    // The first that comes back is used.
    pool.probed(at(30), 2, CONNECTED);
    assert_eq!(pool.candidates(at(30)), 0b100);
}

#[test]
fn a_server_that_fails_alone_is_left_out_for_a_while() {
    let mut pool = pool(3);
    let mut counts = [ServerCounts::default(); 3];
    let mut ms = 0;
    while pool.cause(at(ms), 1).is_none() {
        ms += 250;
        assert!(ms <= 3_000, "not noticed");
        for (server, counts) in counts.iter_mut().enumerate() {
            counts.answered += 5;
            counts.errors += if server == 1 { 5 } else { 0 };
        }
        pool.refresh(at(ms), &counts);
    }
    assert_eq!(pool.cause(at(ms), 1), Some(OutCause::Outlier));
    pool.refresh(at(ms + 1_999), &counts);
    assert!(pool.cause(at(ms + 1_999), 1).is_some() && pool.cause(at(ms + 2_000), 1).is_none());
}

#[test]
fn weights_follow_utilisation_where_all_report_it() {
    let mut pool = pool(2);
    let mut counts = [ServerCounts::default(); 2];
    let mut run = |seconds: u64, milli: [u64; 2], reports: [u64; 2]| {
        for _ in 0..seconds {
            for server in 0..2 {
                counts[server].utilisations += reports[server];
                counts[server].utilisation_milli += milli[server] * reports[server];
            }
            let now = pool.compare_at;
            pool.refresh(now, &counts);
        }
        pool.shares().to_vec()
    };
    assert_eq!(run(30, [900, 300], [1, 0]), [1_024, 1_024], "one is silent");
    assert_eq!(run(30, [90, 30], [1, 1]), [1_024, 1_024], "both are idle");
    let learned = run(30, [900, 300], [10, 3]);
    assert_eq!(learned, [512, 2_048], "bounded by a factor of two");
    let even = run(100, [700, 700], [1, 1]);
    assert_eq!(even, learned, "even utilisation is the aim");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fail(ServerIndex, Failure, Option<u64>),
    Succeed(ServerIndex),
    Probe(ServerIndex, ProbeOutcome),
    Answers(ServerIndex, u64, u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let failure = prop_oneof![Just(Failure::Unreachable), Just(Failure::Reset)];
    let outcome =
        prop_oneof![Just(CONNECTED), Just(GONE), Just(ProbeOutcome::Answered), Just(ProbeOutcome::BadAnswer)];
    prop_oneof![
        4 => (0u16..6, failure, proptest::option::of(0u64..3)).prop_map(|(s, f, c)| Step::Fail(s, f, c)),
        1 => (0u16..6).prop_map(Step::Succeed),
        3 => (0u16..6, outcome).prop_map(|(s, o)| Step::Probe(s, o)),
        2 => (0u16..5, 0u64..40, 0u64..40).prop_map(|(s, a, e)| Step::Answers(s, a + e, e)),
        3 => (1u64..5_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// There is always a candidate; judgements leave half of the servers; shares are positive; ejections and
    /// returns add up.
    #[test]
    fn judgements_are_bounded_and_somebody_is_always_asked(
        steps in proptest::collection::vec(step(), 1..300), servers in 1usize..5,
    ) {
        let mut pool = pool(servers);
        let (mut ms, mut counts) = (0, alloc::vec![ServerCounts::default(); servers]);
        for step in steps {
            match step {
                Step::Fail(server, failure, client) => pool.failed(at(ms), server, failure, client),
                Step::Succeed(server) => pool.succeeded(at(ms), server),
                Step::Probe(server, outcome) => pool.probed(at(ms), server, outcome),
                Step::Answers(server, answered, errors) => if let Some(counts) = counts.get_mut(usize::from(server)) {
                    counts.answered += answered;
                    counts.errors += errors;
                },
                Step::Wait(wait_ms) => ms += wait_ms,
            }
            pool.refresh(at(ms), &counts);
            let candidates = pool.candidates(at(ms));
            prop_assert!(candidates != 0 && candidates < 1 << servers);
            let causes: Vec<_> = (0..servers).map(|it| pool.cause(at(ms), it as u16)).collect();
            let judged = causes.iter().flatten().filter(|cause| cause.is_judgement()).count();
            prop_assert!(judged * 2 <= servers);
            prop_assert!(pool.shares().iter().all(|&share| (1..=2_048).contains(&share)));
            let events = pool.events();
            let out = causes.iter().flatten().count() as u64;
            prop_assert_eq!(events.ejected.iter().sum::<u64>(), events.returned + out);
        }
    }
}

/// Goal: a reload with another list forgets nothing of the servers that stay, and a server that joins them
/// starts slowly.
#[test]
fn a_pool_goes_on_where_the_former_ended() {
    let mut former = pool(2);
    for ms in [0, 300] {
        end_probes(&mut former, ms, |server| if server == 0 { GONE } else { CONNECTED });
    }
    let next = |known_as: &[Option<ServerIndex>]| {
        let mut next =
            ServerPool::new(at(400), known_as.len(), PoolSettings::default()).expect("valid settings");
        next.take_over(at(400), &former, known_as);
        next
    };
    // The one that works, a new one, the one that is out.
    let mut pool = next(&[Some(1), None, Some(0)]);
    assert_eq!(pool.shares(), [1_024, 102, 1_024]);
    assert_eq!((pool.candidates(at(400)), pool.cause(at(400), 2)), (0b011, Some(OutCause::Unreachable)));
    assert_eq!((pool.events(), pool.is_settled(at(400))), (former.events(), false));
    // And from there.
    assert_eq!(end_probes(&mut pool, 2_500, |_| CONNECTED), 3);
    for (ms, shares) in [(2_900, [1_024, 512, 102]), (5_400, [1_024, 1_024, 594])] {
        pool.refresh(at(ms), &[ServerCounts::default(); 3]);
        assert_eq!(pool.shares(), shares, "at {ms}");
    }
    assert_eq!(pool.events().returned, 1);
    // Where none is known, all are as at the start.
    assert_eq!(next(&[None, None]).shares(), [1_024, 1_024]);
    assert_eq!(next(&[Some(7)]).shares(), [1_024]);
}
