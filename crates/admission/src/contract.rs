//! The seam between deciding slowly and acting fast, and the one rule about limits that do not bind.
//!
//! A [`Planner`] sees aggregated samples and makes an immutable plan. [`PlannerDriver`] is the only caller
//! of [`Planner::plan`]: it adds up what became of the requests of the last second ([`Flow`]), asks the
//! planner how much of its limit was in use, and hands over the [`Binding`]. So "a limit that does not bind
//! freezes" is written once, in [`Binding::is_frozen`]. The gateway, the router, the simulator and a replay
//! all drive planners through it.

use alloc::collections::VecDeque;
use flashweir_core::{Duration, Instant};

/// Decides slowly, from what the gates measured.
pub trait Planner {
    /// Measurements of a gate since it was last drained.
    type Sample: Sample;
    /// Instructions for the gates until the next plan.
    type Plan;

    /// Takes one gate's measurements; several gates may report between two plans.
    fn observe(&mut self, now: Instant, sample: &Self::Sample);
    /// The plan for the time from `now` on. Calling early is harmless: the previous plan comes back.
    fn plan(&mut self, now: Instant, binding: &Binding) -> Self::Plan;
    /// Time at which [`plan`](Self::plan) next has something to decide.
    fn next_plan_at(&self) -> Instant;
    /// The share of the planner's own limit that `flow`, counted over `span_s` seconds, used: 0 where there
    /// is no limit, 1 or more where all of it was used.
    fn limit_used(&self, flow: &Flow, span_s: f64) -> f64;
}

/// Common part of all samples.
pub trait Sample {
    /// Outcomes of the requests in the sample's interval, as seen by the stage that took it.
    fn flow(&self) -> Flow;
}

/// Request outcomes, as seen by one stage. Each refusal is charged to exactly one stage, so over all stages
/// the refusals by self add up to all refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Requests that arrived at the door (offered).
    pub offered: u64,
    /// Requests that every stage let in (admitted).
    pub admitted: u64,
    /// Requests that this stage refused.
    pub refused_by_self: u64,
    /// Requests that a stage before this one refused: this one has not seen them.
    pub refused_by_earlier: u64,
    /// Requests that this stage would have let in, and that a later stage refused.
    pub refused_by_later: u64,
}

impl Flow {
    /// Requests refused (shed), over all stages.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused_by_self + self.refused_by_earlier + self.refused_by_later
    }

    /// Adds what another gate, or the same one later, counted.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.admitted += other.admitted;
        self.refused_by_self += other.refused_by_self;
        self.refused_by_earlier += other.refused_by_earlier;
        self.refused_by_later += other.refused_by_later;
    }
}

/// Degree to which a planner's own limit decided what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Binding {
    /// Request outcomes of the last second, at least.
    pub flow: Flow,
    /// The share of the planner's own limit that was in use; see [`Planner::limit_used`].
    pub limit_used: f64,
}

impl Binding {
    /// Returns true if a later stage decides how many requests get through, and less than nine tenths of this
    /// limit were used: then what is measured is no evidence about this limit. Its planner may learn
    /// references, and must not move the limit up or down. Moved all the same, it would be anywhere by the
    /// time it binds. Refusals by this limit itself do not matter, because the later stage would refuse these
    /// requests instead; refusals by an earlier stage do not either, because bounds protect the gateway and
    /// leave the resource behind it as short as it is.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.flow.refused_by_later > 0 && self.limit_used < BINDS_FROM
    }
}

/// A limit of which this share is used decides something: arrivals vary, so a limit that binds is not always
/// full.
const BINDS_FROM: f64 = 0.9;
/// Flows are added up over at least this long: enough for a rate, short against anything a planner waits for.
const FLOW_SPAN: Duration = Duration::from_secs(1);
/// Plans within that time, at most: those of the fastest planner (10 ms), and some.
const FLOWS_KEPT: usize = 128;

/// A planner with what it needs to know of the other stages.
#[derive(Debug)]
pub struct PlannerDriver<P> {
    planner: P,
    /// The intervals between the last plans: when each ended, and its flow.
    flows: VecDeque<(Instant, Flow)>,
    open: Flow,
    /// Start of the oldest interval that is kept.
    from: Instant,
}

impl<P: Planner> PlannerDriver<P> {
    /// Nothing has been observed; `now` is when observing begins.
    #[must_use]
    pub fn new(planner: P, now: Instant) -> Self {
        Self { planner, flows: VecDeque::new(), open: Flow::default(), from: now }
    }

    /// The planner, for what only its own kind can say.
    #[must_use]
    pub fn planner(&self) -> &P {
        &self.planner
    }

    /// The planner, for what only its own kind can be given.
    pub fn planner_mut(&mut self) -> &mut P {
        &mut self.planner
    }

    /// See [`Planner::observe`].
    pub fn observe(&mut self, now: Instant, sample: &P::Sample) {
        self.open.add(&sample.flow());
        self.planner.observe(now, sample);
    }

    /// See [`Planner::plan`].
    pub fn plan(&mut self, now: Instant) -> P::Plan {
        if now >= self.planner.next_plan_at() {
            self.close_interval(now);
        }
        let binding = self.binding(now);
        self.planner.plan(now, &binding)
    }

    /// See [`Planner::next_plan_at`].
    #[must_use]
    pub fn next_plan_at(&self) -> Instant {
        self.planner.next_plan_at()
    }

    /// Binding to hand over with the next plan. O([`FLOWS_KEPT`]).
    fn binding(&self, now: Instant) -> Binding {
        let mut flow = Flow::default();
        self.flows.iter().for_each(|(_, one)| flow.add(one));
        let span_s = now.saturating_since(self.from).as_secs_f64();
        Binding { flow, limit_used: self.planner.limit_used(&flow, span_s) }
    }

    fn close_interval(&mut self, now: Instant) {
        self.flows.push_back((now, core::mem::take(&mut self.open)));
        while let Some(&(to, _)) = self.flows.front()
            && (now.saturating_since(to) >= FLOW_SPAN || self.flows.len() > FLOWS_KEPT)
        {
            self.flows.pop_front();
            self.from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const OTHERS_REFUSE: Flow =
        Flow { offered: 100, admitted: 50, refused_by_self: 0, refused_by_earlier: 0, refused_by_later: 50 };

    /// Goal: a limit freezes only while a later stage refuses and less than nine tenths of it are used.
    #[test]
    fn a_limit_is_frozen_only_while_it_is_not_what_binds() {
        let frozen = |flow, limit_used| Binding { flow, limit_used }.is_frozen();
        assert!(frozen(OTHERS_REFUSE, 0.89));
        assert!(!frozen(OTHERS_REFUSE, 0.9), "it is about to bind");
        assert!(
            frozen(Flow { refused_by_self: 50, ..OTHERS_REFUSE }, 0.5),
            "others decide how many get through"
        );
        let by_bounds = Flow { refused_by_earlier: 50, refused_by_later: 0, ..OTHERS_REFUSE };
        assert!(!frozen(by_bounds, 0.5), "bounds guard another resource");
        assert!(!frozen(Flow { offered: 100, admitted: 100, ..Flow::default() }, 0.5), "no stage refuses");
    }

    /// A planner that reports its binding as its plan.
    struct Echo(Instant);

    impl Sample for Flow {
        fn flow(&self) -> Flow {
            *self
        }
    }

    impl Planner for Echo {
        type Sample = Flow;
        type Plan = Binding;

        fn observe(&mut self, _: Instant, _: &Flow) {}

        fn plan(&mut self, now: Instant, binding: &Binding) -> Binding {
            self.0 = now + Duration::from_millis(100);
            *binding
        }

        fn next_plan_at(&self) -> Instant {
            self.0
        }

        fn limit_used(&self, flow: &Flow, span_s: f64) -> f64 {
            flow.admitted as f64 / span_s
        }
    }

    /// Goal: the binding covers the last second and nothing before. Method: one sample every 100 ms, then
    /// none.
    #[test]
    fn the_binding_is_that_of_the_last_second() {
        let mut driver = PlannerDriver::new(Echo(Instant::ZERO), Instant::ZERO);
        let one = Flow { offered: 10, admitted: 5, ..Flow::default() };
        let mut at = |millis: u64, flow: Option<&Flow>| {
            let now = Instant::from_millis(millis);
            flow.into_iter().for_each(|flow| driver.observe(now, flow));
            driver.plan(now)
        };
        let plans: Vec<Binding> = (1..=30).map(|tick| at(tick * 100, Some(&one))).collect();
        assert_eq!(plans[0].flow.offered, 10);
        assert_eq!((plans[29].flow.offered, plans[29].limit_used.round()), (100, 50.0));
        // A plan before its time hands over the same binding again.
        assert_eq!(at(3_000, Some(&one)).flow.offered, 100);
        assert_eq!(at(9_000, None).flow.offered, 10);
        assert_eq!(at(19_000, None).flow.offered, 0);
    }
}
