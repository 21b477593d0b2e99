//! The loop with the planners of the product, at literal times: clocks that jump, restarts, reloads.

use super::*;
use flashweir_admission::flash_crowd::{self, Baseline, FlashCrowdPlanner, PlannerMode, Settings};
use flashweir_admission::sentry::{self, ClassCounts, Policy, SentryPlanner};
use std::convert::Infallible;
use std::sync::Arc;

/// Publishes into a list.
struct Surroundings<P: Planner> {
    now: Instant,
    interval: Duration,
    build: fn() -> P,
    published: Vec<P::Plan>,
    events: Vec<LoopEvent>,
}

impl<P: Planner<Plan: LimitPlan>> Surroundings<P> {
    fn new(interval: Duration, build: fn() -> P) -> Self {
        Self { now: Instant::from_secs(1), interval, build, published: Vec::new(), events: Vec::new() }
    }

    fn check_epochs(&self) {
        assert!(self.published.iter().map(LimitPlan::epoch).is_sorted_by(|one, next| one < next));
    }
}

impl<P: Planner<Plan: LimitPlan>> Outlet<P> for Surroundings<P> {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.now
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn planner(&mut self) -> Option<P> {
        Some((self.build)())
    }

    fn epoch_in_force(&self) -> u64 {
        self.published.last().map_or(0, LimitPlan::epoch)
    }

    fn publish(&mut self, _: Instant, plan: P::Plan, _: Option<&P>) -> Result<(), Infallible> {
        self.published.push(plan);
        Ok(())
    }

    fn report(&mut self, _: Instant, event: &LoopEvent) {
        self.events.push(event.clone());
    }
}

/// Seconds at which rounds begin whose clock jumped: hours ahead, back to the start, ahead again, to the end
/// of time.
const JUMPS_S: [u64; 5] = [1, 18_000, 2, 90_000, u64::MAX / 1_000_000_000 - 10];

fn news() -> FlashCrowdPlanner {
    let settings = Settings {
        mode: PlannerMode::Repaired,
        interval: Duration::from_millis(100),
        margin: 0.2,
        gates: 1,
        hot_spots: true,
        shadow: false,
    };
    FlashCrowdPlanner::new(settings, &Baseline::default())
}

/// Goal: no panic, no negative or infinite rate, numbers that rise, and one line for each jump.
#[test]
fn news_survives_a_clock_that_jumps() {
    let mut outlet = Surroundings::new(Duration::from_millis(100), news);
    let mut planner_loop = PlannerLoop::new(&mut outlet, flash_crowd::Plan::open(1));
    let mut last = Instant::from_secs(1);
    for second in JUMPS_S {
        for tick in 0..50 {
            let now = Instant::from_secs(second) + Duration::from_millis(100 * tick);
            let sample = flash_crowd::Sample {
                from: last,
                to: now,
                flow: flashweir_admission::Flow {
                    offered: 50,
                    admitted: 50,
                    ..flashweir_admission::Flow::default()
                },
                unique_offered: 50,
                entered: 50,
                handed_over: 0,
                completed: 50,
                ..flash_crowd::Sample::default()
            };
            last = now;
            outlet.now = now;
            planner_loop.observe(&mut outlet, now, &sample);
            let Ok(()) = planner_loop.evaluate(&mut outlet);
            let why = outlet.published.last().expect("a plan").explanation;
            let rates = [why.offered_rps, why.unique_offered_rps, why.admitted_rps, why.completed_rps];
            assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{now:?}: {why:?}");
        }
    }
    outlet.check_epochs();
    assert_eq!(outlet.events.len(), JUMPS_S.len() - 1, "{:?}", outlet.events);
    assert_eq!(outlet.published.len(), 250, "a plan in every round");
}

fn sentry() -> SentryPlanner {
    SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))))
}

#[test]
fn a_sentry_survives_a_clock_that_jumps() {
    let mut outlet = Surroundings::new(Duration::from_millis(20), sentry);
    let mut planner_loop = PlannerLoop::new(&mut outlet, sentry().current().clone());
    let mut last = Instant::from_secs(1);
    for second in JUMPS_S {
        for tick in 0..50 {
            let now = Instant::from_secs(second) + Duration::from_millis(20 * tick);
            let sample = sentry::Sample {
                from: last,
                to: now,
                offered: 5,
                completed: 5,
                in_flight_nanos: 40_000_000,
                classes: vec![ClassCounts { offered: 5, ..ClassCounts::default() }],
                ..sentry::Sample::default()
            };
            last = now;
            outlet.now = now;
            planner_loop.observe(&mut outlet, now, &sample);
            let Ok(()) = planner_loop.evaluate(&mut outlet);
            let plan = outlet.published.last().expect("a plan");
            let why = plan.explanation;
            assert!(plan.limit >= 1 && why.completed_rps.is_finite() && why.completed_rps >= 0.0);
            assert!(why.capacity_rps.is_finite() && why.in_flight.is_finite(), "{now:?}: {why:?}");
        }
    }
    outlet.check_epochs();
    assert_eq!(outlet.events.len(), JUMPS_S.len() - 1, "{:?}", outlet.events);
    assert_eq!(outlet.published.len(), 250, "a plan in every round");
}

/// Goal: while the thread that publishes stalls, the plan that is in force rises to open, with numbers that
/// rise; a plan published afterwards has a larger number, even if its own number is smaller.
#[test]
fn a_slot_decays_while_nothing_is_published_into_it() {
    let mut plan = sentry().current().clone();
    plan.set_epoch(41);
    let first = plan.limit;
    let slot = Arc::new(arc_swap::ArcSwap::from_pointee(plan.clone()));
    let mut decay = SlotDecay::default();
    let in_force = || {
        let plan = slot.load();
        (plan.epoch, plan.limit)
    };
    let mut looks = (0..20).map(|second| {
        decay.decay(&slot, Duration::from_secs(second));
        in_force()
    });
    let found: Vec<(u64, u32)> = looks.by_ref().collect();
    assert_eq!((found[1].1, found[2].1), (2 * first, 4 * first));
    assert!(found.is_sorted() && slot.load().is_open(), "{found:?}");
    let epoch = slot.load().epoch;
    assert!(!decay.decay(&slot, Duration::from_secs(30)), "an open plan is not replaced again and again");
    decay.end();
    put_in_force(&slot, &plan);
    assert_eq!((slot.load().epoch, slot.load().limit), (epoch + 1, first));
}

/// Goal: a round does not wait for a gate that does not report, and counts those that did.
#[test]
fn a_round_waits_for_samples_within_its_bound() {
    struct OneOfTwo {
        rounds: Arc<std::sync::Mutex<Vec<usize>>>,
        to_come: usize,
    }
    impl Station for OneOfTwo {
        const SAMPLES_AWAITED: Duration = Duration::from_millis(5);

        fn clock(&self) -> crate::Clock {
            crate::Clock::start()
        }

        fn due(&self, now: Instant) -> Instant {
            now
        }

        fn ask(&mut self) -> usize {
            self.to_come = 1;
            2
        }

        async fn receive(&mut self) -> Option<bool> {
            if self.to_come == 0 {
                std::future::pending::<()>().await;
            }
            self.to_come -= 1;
            Some(true)
        }

        fn evaluate(&mut self, missing: usize) {
            self.rounds.lock().expect("unpoisoned").push(missing);
        }
    }
    let rounds = Arc::default();
    let station = OneOfTwo { rounds: Arc::clone(&rounds), to_come: 0 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let some_rounds = Duration::from_millis(100);
        let ended = tokio::time::timeout(some_rounds, run(station, Beat::default())).await;
        assert!(ended.is_err(), "it goes on until it is dropped");
    });
    let rounds = rounds.lock().expect("unpoisoned");
    assert!(!rounds.is_empty() && rounds.iter().all(|&missing| missing == 1), "{rounds:?}");
}
