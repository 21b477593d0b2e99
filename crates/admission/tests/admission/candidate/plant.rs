//! An origin that shares its servers evenly, a live policy before it, and a candidate beside that: in virtual
//! time.

use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{
    Arrived, CandidateGate, CandidatePlanner, ClassCounts, Common, Compared, Ending, Permit, Policy,
    Released, SentryGate, SentryPlanner, SentryRequest,
};
use flashweir_core::{Duration, Instant, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arrivals, and the origin they reach.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    /// Requests per second of each class, and their mean work (exponential), seconds.
    pub(crate) classes: Vec<(f64, f64)>,
    pub(crate) servers: f64,
    pub(crate) gates: usize,
    pub(crate) seed: u64,
}

/// Outcomes of the requests, by class, from [`FROM`] on.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) live: Vec<ClassCounts>,
    pub(crate) candidate: Vec<ClassCounts>,
    pub(crate) compared: Vec<Compared>,
}

/// Until then there is less: that is how it is known what requests take alone.
const QUIET: Duration = Duration::from_secs(5);
const QUIET_SHARE: f64 = 0.2;
/// Start of the count, which ends with the run.
const FROM: Duration = Duration::from_secs(10);
const TO: Duration = Duration::from_secs(30);

struct Plant<'a> {
    crowd: &'a Crowd,
    now: Instant,
    gates: Vec<(SentryGate<u64>, CandidateGate)>,
    planner: PlannerDriver<SentryPlanner>,
    candidate: CandidatePlanner,
    /// By number: work in nanoseconds, and the key at the candidate's gate.
    requests: Vec<(u64, usize)>,
    /// By the service after which each is done, nanoseconds, and a number.
    running: BTreeMap<(u64, u64), (usize, Permit)>,
    served_nanos: u64,
    outcome: Outcome,
}

/// Runs a crowd under a live policy; the candidate has as many classes.
pub(crate) fn run(crowd: &Crowd, live: &Policy, candidate: &Policy) -> Outcome {
    let classes = crowd.classes.len();
    let planner = PlannerDriver::new(SentryPlanner::new(Arc::new(live.clone())), Instant::ZERO);
    let first = SentryPlanner::new(Arc::new(candidate.clone())).current().clone();
    let (common, virtual_common) = (Arc::new(Common::new(crowd.gates)), Arc::new(Common::new(crowd.gates)));
    let gate = |index| {
        (
            SentryGate::new(common.clone(), index, live, planner.planner().current()),
            CandidateGate::new(virtual_common.clone(), index, candidate, &first),
        )
    };
    let mut plant = Plant {
        crowd,
        now: Instant::ZERO,
        gates: (0..crowd.gates).map(gate).collect(),
        candidate: CandidatePlanner::new(Arc::new(candidate.clone())),
        planner,
        requests: Vec::new(),
        running: BTreeMap::new(),
        served_nanos: 0,
        outcome: Outcome {
            live: vec![ClassCounts::default(); classes],
            candidate: vec![ClassCounts::default(); classes],
            compared: vec![Compared::default(); classes],
        },
    };
    let mut rng = Rng::new(crowd.seed);
    let mut next: Vec<f64> = crowd.classes.iter().map(|&(rate, _)| rng.exponential(1.0 / rate)).collect();
    loop {
        let (class, at_s) =
            next.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).expect("classes");
        if at_s >= TO.as_secs_f64() {
            return plant.outcome;
        }
        plant.run_until(Instant::from_duration(Duration::from_secs_f64(at_s)));
        let (rate, mean_s) = crowd.classes[class];
        let rate = if at_s < QUIET.as_secs_f64() { QUIET_SHARE * rate } else { rate };
        next[class] += rng.exponential(1.0 / rate);
        let work_nanos = (rng.exponential(mean_s) * 1e9) as u64;
        plant.arrive(class, work_nanos, rng.below(crowd.gates as u64) as usize);
    }
}

impl Plant<'_> {
    fn arrive(&mut self, class: usize, work_nanos: u64, gate: usize) {
        let request = self.requests.len() as u64;
        let asked = SentryRequest {
            class: class as u8,
            url_class: class as u32,
            client_key: request,
            ..SentryRequest::default()
        };
        let (live, candidate) = &mut self.gates[gate];
        let key = candidate.arrive(self.now, asked).expect("few are compared");
        self.requests.push((work_nanos, key));
        match live.arrive(self.now, asked, request) {
            Arrived::Admit(request, permit) => self.start(gate, request, permit),
            Arrived::Shed(request, _) => self.refuse(gate, request),
            Arrived::Held(_) => candidate.live_holds(self.now, key),
            Arrived::HeldInsteadOf(_, other, _) => {
                candidate.live_holds(self.now, key);
                self.refuse(gate, other);
            }
        }
        self.settle(gate);
    }

    /// Runs all events until then: answers, expiries and plans.
    fn run_until(&mut self, until: Instant) {
        loop {
            let speed = (self.crowd.servers / self.running.len().max(1) as f64).min(1.0);
            let first = self.running.first_key_value().map(|(&(done, _), _)| done);
            let left = first.map(|done| done.saturating_sub(self.served_nanos) as f64 / speed);
            let ends = left.map_or(Instant::MAX, |nanos| self.now + Duration::from_nanos(nanos as u64 + 1));
            let plans = self.planner.next_plan_at().max(self.now);
            let wakes = self.gates.iter().filter_map(|(live, _)| live.next_wake()).min();
            let wakes = wakes.unwrap_or(Instant::MAX);
            let next = until.min(ends).min(plans).min(wakes.max(self.now));
            self.served_nanos += (next.saturating_since(self.now).as_nanos() as f64 * speed) as u64;
            self.now = next;
            if next == ends {
                self.served_nanos = self.served_nanos.max(first.unwrap_or(0));
                self.finish();
            } else if next == plans {
                self.plan();
            } else if wakes <= next {
                (0..self.gates.len()).for_each(|gate| self.settle(gate));
            } else {
                return;
            }
        }
    }

    fn start(&mut self, gate: usize, request: u64, permit: Permit) {
        let (work_nanos, key) = self.requests[request as usize];
        self.running.insert((self.served_nanos + work_nanos, request), (gate, permit));
        self.gates[gate].1.live_let_in(self.now, key);
    }

    fn refuse(&mut self, gate: usize, request: u64) {
        let (_, key) = self.requests[request as usize];
        self.gates[gate].1.live_refused(self.now, key);
    }

    fn finish(&mut self) {
        let Some(((_, request), (gate, permit))) = self.running.pop_first() else { return };
        let (_, key) = self.requests[request as usize];
        let (live, candidate) = &mut self.gates[gate];
        live.end(self.now, permit, Ending { completed: true, ..Ending::default() });
        candidate.live_ended(self.now, key, true);
        self.settle(gate);
    }

    fn plan(&mut self) {
        let is_counted = self.now >= Instant::from_duration(FROM);
        for (live, candidate) in &mut self.gates {
            let sample = live.drain(self.now);
            let (virtual_sample, compared) = candidate.drain(self.now);
            self.planner.observe(self.now, &sample);
            self.candidate.observe_live(&sample);
            self.candidate.observe(&virtual_sample);
            if is_counted {
                let Outcome { live, candidate, compared: all } = &mut self.outcome;
                live.iter_mut().zip(&sample.classes).for_each(|(all, one)| all.add(one));
                candidate.iter_mut().zip(&virtual_sample.classes).for_each(|(all, one)| all.add(one));
                all.iter_mut().zip(&compared).for_each(|(all, one)| all.add(one));
            }
        }
        let plan = self.planner.plan(self.now);
        let virtual_plan = self.candidate.plan(self.now, self.planner.planner());
        for gate in 0..self.gates.len() {
            let (live, candidate) = &mut self.gates[gate];
            live.apply(&plan);
            candidate.apply(&virtual_plan);
            self.settle(gate);
        }
    }

    fn settle(&mut self, first: usize) {
        let mut gate = first;
        loop {
            while let Some(released) = self.gates[gate].0.next(self.now) {
                match released {
                    Released::Admit(request, permit) => self.start(gate, request, permit),
                    Released::Shed(request, _) => self.refuse(gate, request),
                }
            }
            match self.gates[gate].0.who_waits() {
                Some(other) => gate = other,
                None => return,
            }
        }
    }
}
