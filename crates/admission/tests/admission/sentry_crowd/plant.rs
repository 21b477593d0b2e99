//! An origin that shares its servers evenly, gates of several workers before it, and a crowd: in virtual
//! time.

use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{
    Arrived, Common, Ending, Permit, Plan, Policy, Released, SentryGate, SentryPlanner, SentryRequest,
};
use flashweir_core::{Duration, Instant, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arrivals, and the origin they reach.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) policy: Policy,
    /// Requests per second of each class, and their mean work (exponential), seconds.
    pub(crate) classes: Vec<(f64, f64)>,
    pub(crate) servers: f64,
    pub(crate) gates: usize,
    /// Time of less load before the crowd comes: in it the gate learns what requests take alone.
    pub(crate) quiet_s: f64,
    /// Start of the count, which ends with the run.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) seed: u64,
}

/// Outcomes of a class's requests that came while it was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Answered within the target.
    pub(crate) good: u64,
    pub(crate) work_s: f64,
    pub(crate) good_work_s: f64,
}

/// Outcomes of all.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) classes: Vec<Fate>,
    /// From arrival to the end of the answer, seconds, sorted.
    pub(crate) response_s: Vec<f64>,
    /// Requests by number, those that came while it was counted.
    pub(crate) admitted: Vec<u64>,
    pub(crate) plan: Plan,
    pub(crate) span_s: f64,
}

impl Outcome {
    /// Work done in time, in servers.
    pub(crate) fn good_servers(&self) -> f64 {
        self.classes.iter().map(|class| class.good_work_s).sum::<f64>() / self.span_s
    }

    pub(crate) fn admitted_rps(&self) -> Vec<f64> {
        self.classes.iter().map(|class| (class.admitted as f64 / self.span_s * 10.0).round() / 10.0).collect()
    }

    pub(crate) fn quantile_s(&self, share: f64) -> f64 {
        let last = self.response_s.len().saturating_sub(1);
        self.response_s.get((last as f64 * share) as usize).copied().unwrap_or(0.0)
    }
}

#[derive(Clone, Copy)]
struct Request {
    class: usize,
    arrived: Instant,
    work_s: f64,
}

struct Plant {
    crowd: Crowd,
    now: Instant,
    gates: Vec<SentryGate<u64>>,
    planner: PlannerDriver<SentryPlanner>,
    requests: Vec<Request>,
    /// By the service after which each is done, nanoseconds, and a number.
    running: BTreeMap<(u64, u64), (usize, Permit)>,
    served_nanos: u64,
    outcome: Outcome,
}

/// Runs a crowd; `clients` names who asks, by class and number of the request.
pub(crate) fn run(crowd: &Crowd, clients: impl Fn(usize, u64) -> u64) -> Outcome {
    let planner = PlannerDriver::new(SentryPlanner::new(Arc::new(crowd.policy.clone())), Instant::ZERO);
    let common = Arc::new(Common::new(crowd.gates));
    let gate = |index| SentryGate::new(common.clone(), index, &crowd.policy, planner.planner().current());
    let outcome = Outcome {
        classes: vec![Fate::default(); crowd.classes.len()],
        response_s: Vec::new(),
        admitted: Vec::new(),
        plan: planner.planner().current().clone(),
        span_s: crowd.to_s - crowd.from_s,
    };
    let mut plant = Plant {
        now: Instant::ZERO,
        gates: (0..crowd.gates).map(gate).collect(),
        planner,
        requests: Vec::new(),
        running: BTreeMap::new(),
        served_nanos: 0,
        outcome,
        crowd: crowd.clone(),
    };
    let mut rng = Rng::new(crowd.seed);
    let classes = crowd.classes.iter();
    let mut next: Vec<f64> = classes.map(|&(rate, _)| rng.exponential(1.0 / rate.max(1e-9))).collect();
    loop {
        let (class, at_s) =
            next.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).expect("classes");
        if at_s >= crowd.to_s {
            return plant.outcome;
        }
        plant.run_until(Instant::from_duration(Duration::from_secs_f64(at_s)));
        let (rate, mean_s) = crowd.classes[class];
        let rate = if at_s < crowd.quiet_s { QUIET_SHARE * rate } else { rate };
        next[class] += rng.exponential(1.0 / rate);
        let client = clients(class, plant.requests.len() as u64);
        plant.arrive(class, client, rng.exponential(mean_s), rng.below(crowd.gates as u64) as usize);
    }
}

/// Of the crowd's rates, so much comes before it.
const QUIET_SHARE: f64 = 0.25;

impl Plant {
    fn arrive(&mut self, class: usize, client_key: u64, work_s: f64, gate: usize) {
        let request = self.requests.len() as u64;
        self.requests.push(Request { class, arrived: self.now, work_s });
        if let Some(fate) = self.fate(request) {
            fate.offered += 1;
            fate.work_s += work_s;
        }
        let asked = SentryRequest {
            class: class as u8,
            url_class: class as u32,
            client_key,
            ..SentryRequest::default()
        };
        match self.gates[gate].arrive(self.now, asked, request) {
            Arrived::Admit(request, permit) => self.start(gate, request, permit),
            Arrived::Shed(request, _) | Arrived::HeldInsteadOf(_, request, _) => self.refuse(request),
            Arrived::Held(_) => {}
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
            let wakes = self.gates.iter().filter_map(SentryGate::next_wake).min().unwrap_or(Instant::MAX);
            let next = until.min(ends).min(plans).min(wakes.max(self.now));
            let passed = next.saturating_since(self.now).as_nanos() as f64;
            self.served_nanos += (passed * speed) as u64;
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
        if let Some(fate) = self.fate(request) {
            fate.admitted += 1;
            self.outcome.admitted.push(request);
        }
        let work_nanos = (self.requests[request as usize].work_s * 1e9) as u64;
        self.running.insert((self.served_nanos + work_nanos, request), (gate, permit));
    }

    fn refuse(&mut self, request: u64) {
        if let Some(fate) = self.fate(request) {
            fate.refused += 1;
        }
    }

    fn finish(&mut self) {
        let Some(((_, request), (gate, permit))) = self.running.pop_first() else { return };
        let Request { arrived, work_s, class } = self.requests[request as usize];
        let response = self.now.saturating_since(arrived);
        let is_good = response <= self.outcome.plan.classes[class].target;
        if let Some(fate) = self.fate(request) {
            fate.good += u64::from(is_good);
            fate.good_work_s += if is_good { work_s } else { 0.0 };
            let response_s = response.as_secs_f64();
            let at = self.outcome.response_s.partition_point(|&other| other < response_s);
            self.outcome.response_s.insert(at, response_s);
        }
        self.gates[gate].end(self.now, permit, Ending { completed: true, ..Ending::default() });
        self.settle(gate);
    }

    fn plan(&mut self) {
        for gate in &mut self.gates {
            self.planner.observe(self.now, &gate.drain(self.now));
        }
        self.outcome.plan = self.planner.plan(self.now);
        for gate in 0..self.gates.len() {
            self.gates[gate].apply(&self.outcome.plan);
            self.settle(gate);
        }
    }

    fn settle(&mut self, first: usize) {
        let mut gate = first;
        loop {
            while let Some(released) = self.gates[gate].next(self.now) {
                match released {
                    Released::Admit(request, permit) => self.start(gate, request, permit),
                    Released::Shed(request, _) => self.refuse(request),
                }
            }
            match self.gates[gate].who_waits() {
                Some(other) => gate = other,
                None => return,
            }
        }
    }

    /// Count that the outcome of a request belongs to, if it is counted.
    fn fate(&mut self, request: u64) -> Option<&mut Fate> {
        let Request { arrived, class, .. } = self.requests[request as usize];
        (arrived.as_secs_f64() >= self.crowd.from_s).then(|| &mut self.outcome.classes[class])
    }
}
