//! The loop with a scripted planner, at literal times.

use super::*;
use flashweir_admission::flash_crowd::{Limit, Mode, Plan, Rule};
use flashweir_admission::{Binding, Flow, Sample};
use flashweir_core::Rate;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const INTERVAL: Duration = Duration::from_millis(100);

/// Behaviour of a scripted planner at its next call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Behaviour {
    #[default]
    Plans,
    Panics,
    PanicsAtSamples,
    /// Takes this long.
    Takes(Duration),
    /// Gives the same plan again and again.
    Repeats,
    /// Never wants to be asked again.
    Waits,
}

#[derive(Clone, Debug, Default)]
struct Script {
    now: Rc<Cell<Instant>>,
    behaviour: Rc<Cell<Behaviour>>,
    /// The ceiling that the planner sets; none for an open plan.
    ceiling_rps: Rc<Cell<Option<f64>>>,
}

struct Scripted {
    script: Script,
    plan: Plan,
    next_plan_at: Instant,
}

#[derive(Default)]
struct NoSample;

impl Sample for NoSample {
    fn flow(&self) -> Flow {
        Flow::default()
    }
}

impl Planner for Scripted {
    type Sample = NoSample;
    type Plan = Plan;

    fn observe(&mut self, _: Instant, _: &NoSample) {
        assert_ne!(self.script.behaviour.get(), Behaviour::PanicsAtSamples, "as scripted");
    }

    fn plan(&mut self, now: Instant, _: &Binding) -> Plan {
        match self.script.behaviour.get() {
            Behaviour::Panics => panic!("as scripted"),
            Behaviour::Takes(time) => self.script.now.set(now + time),
            Behaviour::Repeats => return self.plan.clone(),
            Behaviour::Waits => self.next_plan_at = Instant::MAX,
            Behaviour::Plans | Behaviour::PanicsAtSamples => {}
        }
        if now < self.next_plan_at {
            return self.plan.clone();
        }
        self.next_plan_at = now + INTERVAL;
        let ceiling_rps = self.script.ceiling_rps.get();
        self.plan.epoch += 1;
        self.plan.limit =
            ceiling_rps.map_or(Limit::Open, |ceiling_rps| Limit::All(Rate::from_per_second(ceiling_rps)));
        self.plan.explanation.ceiling_rps = ceiling_rps;
        self.plan.explanation.mode = if ceiling_rps.is_some() { Mode::Alarm } else { Mode::Normal };
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }

    fn limit_used(&self, _: &Flow, _: f64) -> f64 {
        0.0
    }
}

#[derive(Default)]
struct Surroundings {
    script: Script,
    /// Planners built.
    built: usize,
    published: Vec<Plan>,
    events: Vec<LoopEvent>,
    foreign_epoch: u64,
    kept: usize,
}

impl Outlet<Scripted> for Surroundings {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.script.now.get()
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn planner(&mut self) -> Option<Scripted> {
        self.built += 1;
        let script = self.script.clone();
        Some(Scripted { script, plan: Plan::open(1), next_plan_at: Instant::ZERO })
    }

    fn epoch_in_force(&self) -> u64 {
        self.published.last().map_or(0, |plan| plan.epoch).max(self.foreign_epoch)
    }

    fn publish(&mut self, _: Instant, plan: Plan, _: Option<&Scripted>) -> Result<(), Infallible> {
        self.published.push(plan);
        Ok(())
    }

    fn keep_baseline(&mut self, _: Instant, _: &Scripted) {
        self.kept += 1;
    }

    fn report(&mut self, _: Instant, event: &LoopEvent) {
        self.events.push(event.clone());
    }
}

/// A loop and its surroundings.
struct Bench {
    planner_loop: PlannerLoop<Scripted>,
    outlet: Surroundings,
}

impl Bench {
    /// A planner that has set a ceiling of 100 requests a second.
    fn limited() -> Self {
        let mut outlet = Surroundings::default();
        outlet.script.ceiling_rps.set(Some(100.0));
        let planner_loop = PlannerLoop::new(&mut outlet, Plan::open(1));
        let mut bench = Self { planner_loop, outlet };
        bench.round(1_000);
        assert_eq!(bench.ceiling(), 100.0);
        bench
    }

    fn behave(&self, behaviour: Behaviour) {
        self.outlet.script.behaviour.set(behaviour);
    }

    fn round(&mut self, millis: u64) {
        self.outlet.script.now.set(Instant::from_millis(millis));
        self.planner_loop.observe(&mut self.outlet, Instant::from_millis(millis), &NoSample);
        let Ok(()) = self.planner_loop.evaluate(&mut self.outlet);
    }

    /// Rounds each tenth of a second.
    fn rounds(&mut self, millis: std::ops::RangeInclusive<u64>) {
        millis.step_by(100).for_each(|at| self.round(at));
    }

    fn ceiling(&self) -> f64 {
        match self.outlet.published.last().expect("a plan").limit {
            Limit::All(rate) => rate.per_second().round(),
            Limit::Open => f64::INFINITY,
            Limit::HotSpots(_) => unreachable!("the script sets none"),
        }
    }

    fn restarts(&self) -> Vec<u64> {
        let restarts = self.outlet.events.iter().filter_map(|event| match event {
            LoopEvent::Restart { delay, .. } => Some(delay.as_secs()),
            LoopEvent::ClockJumpedAhead(_) => None,
        });
        restarts.collect()
    }

    fn check_epochs(&self) {
        let epochs = self.outlet.published.iter().map(|plan| plan.epoch);
        assert!(epochs.is_sorted_by(|one, next| one < next), "a plan older than the one in force");
    }
}

/// Goal: a panic costs one planner, is reported once, and the next planner plans at once, held to the
/// decaying ceiling.
#[test]
fn a_planner_that_panics_once_is_replaced_at_once() {
    let mut bench = Bench::limited();
    bench.behave(Behaviour::Panics);
    bench.round(1_100);
    assert_eq!(bench.ceiling(), 100.0, "the plan in force stays for the moment");
    bench.behave(Behaviour::Plans);
    // The crowd has not been found again yet.
    bench.outlet.script.ceiling_rps.set(None);
    bench.round(1_200);
    assert_eq!((bench.outlet.built, bench.restarts()), (2, vec![0]));
    assert!((100.0..110.0).contains(&bench.ceiling()), "{}", bench.ceiling());
    assert_eq!(bench.outlet.published.last().expect("a plan").explanation.rule, Rule::Decay);
    bench.rounds(1_300..=3_100);
    assert_eq!(bench.ceiling(), 400.0, "two seconds after the fault");
    // Now it is found.
    bench.outlet.script.ceiling_rps.set(Some(150.0));
    bench.round(3_200);
    assert_eq!(bench.ceiling(), 150.0);
    bench.outlet.script.ceiling_rps.set(None);
    bench.round(3_300);
    assert_eq!(bench.ceiling(), f64::INFINITY, "the new planner decides by itself");
    bench.check_epochs();
    assert_eq!(bench.outlet.events.len(), 1);
}

/// Goal: while no planner lives, the ceiling doubles each second and is gone after ten; restarts become rare.
#[test]
fn the_plan_of_a_planner_that_always_panics_decays_to_open() {
    let mut bench = Bench::limited();
    bench.behave(Behaviour::Panics);
    let mut last = 0.0;
    for at in (1_100..=11_000).step_by(100) {
        bench.round(at);
        assert!(bench.ceiling() >= last && bench.ceiling().is_finite());
        last = bench.ceiling();
    }
    assert!(last > 90_000.0);
    bench.round(11_100);
    assert_eq!(bench.ceiling(), f64::INFINITY);
    let plans = bench.outlet.published.len();
    bench.rounds(11_200..=40_000);
    assert_eq!(bench.outlet.published.len(), plans, "an open plan is not published again and again");
    assert_eq!(bench.restarts(), [0, 1, 2, 4, 8, 16, 32]);
    bench.check_epochs();
    // It is well again at last.
    bench.behave(Behaviour::Plans);
    bench.rounds(40_100..=75_000);
    assert_eq!(bench.ceiling(), 100.0);
}

#[test]
fn a_panic_while_observing_is_a_fault_too() {
    let mut bench = Bench::limited();
    bench.behave(Behaviour::PanicsAtSamples);
    bench.round(1_100);
    assert!(matches!(&bench.outlet.events[..], [LoopEvent::Restart { fault: Fault::Panicked(_), .. }]));
    bench.behave(Behaviour::Plans);
    bench.round(1_200);
    assert_eq!(bench.ceiling(), 100.0);
}

/// Goal: a plan that took too long is not put into force, and its planner goes.
#[test]
fn a_planner_that_takes_too_long_is_replaced() {
    let mut bench = Bench::limited();
    bench.outlet.script.ceiling_rps.set(Some(7.0));
    let took = Duration::from_secs(3);
    bench.behave(Behaviour::Takes(took));
    bench.round(1_100);
    assert_eq!(bench.outlet.events, [LoopEvent::Restart { fault: Fault::Slow(took), delay: Duration::ZERO }]);
    assert_eq!(bench.ceiling(), 100.0);
    bench.behave(Behaviour::Plans);
    bench.round(4_200);
    assert_eq!((bench.ceiling(), bench.outlet.built), (7.0, 2));
}

/// Goal: a planner that gives no plan any more is seen, whether it repeats itself or does not want to be
/// asked.
#[test]
fn a_planner_that_falls_silent_is_replaced_after_a_second() {
    for behaviour in [Behaviour::Repeats, Behaviour::Waits] {
        let mut bench = Bench::limited();
        bench.behave(behaviour);
        bench.rounds(1_100..=1_900);
        assert_eq!(bench.restarts(), [0; 0], "{behaviour:?}");
        bench.round(2_000);
        assert_eq!(bench.restarts(), [0], "{behaviour:?}");
        bench.behave(Behaviour::Plans);
        bench.round(2_100);
        assert_eq!(bench.outlet.built, 2);
        assert_eq!(bench.ceiling(), 100.0);
        bench.check_epochs();
    }
}

/// Goal: numbers continue over reloads and over plans that another thread published meanwhile.
#[test]
fn epochs_rise_over_reloads_and_foreign_plans() {
    let mut bench = Bench::limited();
    bench.rounds(1_100..=1_500);
    let Ok(()) = bench.planner_loop.reconfigure(&mut bench.outlet, Plan::open(1));
    assert_eq!((bench.ceiling(), bench.outlet.built), (f64::INFINITY, 2));
    bench.round(1_600);
    bench.outlet.foreign_epoch = 1_000;
    bench.round(1_700);
    assert_eq!(bench.outlet.published.last().expect("a plan").epoch, 1_001);
    bench.check_epochs();
    assert_eq!((bench.ceiling(), bench.outlet.events.len()), (100.0, 0));
}

/// Goal: asking before the time changes nothing and is no silence.
#[test]
fn asking_early_publishes_nothing() {
    let mut bench = Bench::limited();
    let plans = bench.outlet.published.len();
    (1_001..1_100).for_each(|at| bench.round(at));
    assert_eq!((bench.outlet.published.len(), bench.outlet.events.len()), (plans, 0));
    assert_eq!(bench.outlet.kept, 100, "what was learned is kept in every round");
}

/// Goal: a clock that goes back starts the planner again with one line; its limit stays and no span is
/// negative.
#[test]
fn a_clock_that_goes_back_restarts_the_planner() {
    let mut bench = Bench::limited();
    bench.round(7_200_000);
    bench.outlet.events.clear();
    bench.outlet.script.ceiling_rps.set(None);
    bench.round(1_000);
    let fault = Fault::ClockWentBack(Duration::from_millis(7_199_000));
    assert_eq!(bench.outlet.events, [LoopEvent::Restart { fault, delay: Duration::ZERO }]);
    assert_eq!((bench.ceiling(), bench.outlet.built), (100.0, 2), "held, and the decay begins");
    bench.rounds(1_100..=3_000);
    assert_eq!(bench.ceiling(), 400.0);
    assert_eq!(bench.outlet.events.len(), 1);
    bench.check_epochs();
}

/// Goal: a decay goes on when the clock goes back in the middle of it.
#[test]
fn a_decay_goes_on_when_the_clock_goes_back() {
    let mut bench = Bench::limited();
    bench.rounds(3_600_000..=3_600_100);
    bench.behave(Behaviour::Panics);
    bench.rounds(3_600_200..=3_601_200);
    let risen = bench.ceiling();
    bench.rounds(1_000..=11_000);
    assert!(risen > 100.0 && bench.ceiling() == f64::INFINITY);
}

#[test]
fn a_clock_that_jumps_hours_ahead_is_reported_once_and_harms_nothing() {
    let mut bench = Bench::limited();
    bench.round(18_000_000);
    let by = Duration::from_millis(17_999_000);
    assert_eq!(bench.outlet.events, [LoopEvent::ClockJumpedAhead(by)]);
    bench.rounds(18_000_100..=18_001_000);
    assert_eq!((bench.ceiling(), bench.outlet.events.len(), bench.outlet.built), (100.0, 1, 1));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Recorder<Scripted> for Log {
    fn started(&mut self, now: Instant) {
        self.0.lock().expect("unpoisoned").push(format!("started {}", now.as_nanos() / 1_000_000));
    }

    fn sample(&mut self, now: Instant, _: &NoSample) {
        self.0.lock().expect("unpoisoned").push(format!("sample {}", now.as_nanos() / 1_000_000));
    }

    fn plan(&mut self, now: Instant, plan: &Plan) {
        self.0.lock().expect("unpoisoned").push(format!(
            "plan {} {}",
            now.as_nanos() / 1_000_000,
            plan.epoch
        ));
    }
}

/// Goal: the recorder sees what went into each planner and what came out, and where one planner ends and
/// the next begins.
#[test]
fn what_goes_in_and_comes_out_is_recorded() {
    let mut bench = Bench::limited();
    let log = Log::default();
    bench.planner_loop.record_to(Instant::from_millis(1_050), Box::new(log.clone()));
    bench.round(1_100);
    bench.behave(Behaviour::Panics);
    bench.round(1_200);
    bench.behave(Behaviour::Plans);
    bench.round(1_300);
    bench.round(1_400);
    let expected = [
        "started 1050",
        "sample 1100",
        "plan 1100 2",
        "sample 1200",
        "started 1300",
        "plan 1300 1",
        "sample 1400",
        "plan 1400 2",
    ];
    assert_eq!(*log.0.lock().expect("unpoisoned"), expected);
}
