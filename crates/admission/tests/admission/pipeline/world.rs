//! Several workers with their pipelines, driven as shells drive them, and an account of everything they
//! answered.

use crate::pipeline::ops::{Op, SentryMode};
use flashweir_admission::Flow;
use flashweir_admission::fairness::{Conduct, RequestSigns, SIGNS};
use flashweir_admission::flash_crowd::{Agreement, CeilingPriority, Response};
use flashweir_admission::gapping::Restriction;
use flashweir_admission::ladder::Orders;
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, Asking, FlashCrowdOptions, OriginShare, Permit, Pipeline, Refusal, Released,
    RequestOutcome, ServiceKey, SharedByWorkers, StageName, Ticket,
};
use flashweir_admission::sentry::{Common, Plan, Policy, SentryRequest};
use flashweir_core::{Duration, Instant, Rate, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const WORKERS: usize = 3;
pub(crate) const SERVICES: usize = 2;
/// Classes of the policy; one more class of requests is exempt.
pub(crate) const CLASSES: usize = 3;

/// For how long the callers that say so can use an answer: shorter than some requests wait.
const DEADLINE: Duration = Duration::from_millis(300);

/// Settings that hold for a whole run; the operations do not change them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// The sentry of every service; otherwise as drawn.
    pub(crate) sentry: Option<SentryMode>,
    /// The flash-crowd stage of every worker; otherwise as drawn.
    pub(crate) ceiling: Option<CeilingMode>,
    /// Candidates are set as drawn; otherwise there are none.
    pub(crate) has_candidates: bool,
    /// The flash-crowd stage of every worker has a candidate that follows the plans in force; otherwise as
    /// drawn.
    pub(crate) has_ceiling_twins: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CeilingMode {
    Open,
    /// Far above anything that arrives.
    Boundless,
    /// One request in a thousand seconds, in shadow.
    ShadowRefusesAll,
}

/// Answer of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Admitted(u64),
    Queued(u64),
    Refused(u64, StageName, Reason),
    Left(u64),
}

/// An independent count of what a ledger counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) again: u64,
    pub(crate) refused: [u64; StageName::COUNT],
    pub(crate) left: u64,
    pub(crate) ended: u64,
    pub(crate) completed: u64,
}

/// Sums over the samples of a sentry's stage, by class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassSums {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) left: u64,
}

/// One version of a service's configuration, at all workers.
pub(crate) struct Service {
    pub(crate) common: Arc<Common>,
    pub(crate) policy: Policy,
    pub(crate) mode: SentryMode,
    pub(crate) plan: Plan,
    pub(crate) at: Vec<ServiceAtWorker>,
}

#[derive(Default)]
pub(crate) struct ServiceAtWorker {
    /// None until the worker has taken the configuration over.
    pub(crate) key: Option<ServiceKey>,
    pub(crate) is_retired: bool,
    /// The plan that this worker follows.
    pub(crate) plan_epoch: u64,
    pub(crate) counted: Counted,
    pub(crate) flow: Flow,
    pub(crate) sums: [ClassSums; CLASSES],
    /// Admitted by the sentry without having been counted as offered.
    pub(crate) again: [u64; CLASSES],
}

pub(crate) struct Request {
    pub(crate) worker: usize,
    pub(crate) service: usize,
    pub(crate) class: usize,
    pub(crate) is_exempt: bool,
    pub(crate) is_counted: bool,
    pub(crate) deadline: Option<Instant>,
    pub(crate) state: State,
}

#[expect(clippy::large_enum_variant, reason = "nearly all are of the large one")]
pub(crate) enum State {
    Waiting(Ticket),
    Admitted { permit: Option<Permit>, share: Option<OriginShare>, is_share_taken: bool },
}

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) shared: SharedByWorkers,
    pub(crate) pipelines: Vec<Pipeline<u64>>,
    /// All versions of all services, in the order in which they were made.
    pub(crate) services: Vec<Service>,
    /// By service: its newest version.
    pub(crate) newest: [usize; SERVICES],
    /// By worker and service: the version in force.
    pub(crate) current: [[usize; SERVICES]; WORKERS],
    pub(crate) requests: BTreeMap<u64, Request>,
    pub(crate) counted: [Counted; WORKERS],
    pub(crate) flows: [Flow; WORKERS],
    pub(crate) unique_offered: [u64; WORKERS],
    pub(crate) now: Instant,
    pub(crate) decisions: Vec<Decision>,
    /// Tickets of requests that wait no more.
    pub(crate) spent: Vec<(usize, Ticket)>,
    pub(crate) epoch: u64,
    /// By worker: whether the flash-crowd stage has a candidate, and how often candidates agreed so far.
    pub(crate) has_ceiling_candidate: [bool; WORKERS],
    pub(crate) agreements: [Agreement; WORKERS],
    next_id: u64,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let shared = SharedByWorkers::default();
        let pipelines = (0..WORKERS).map(|worker| Pipeline::new(worker, &shared)).collect();
        let mut world = Self {
            setup,
            shared,
            pipelines,
            services: Vec::new(),
            newest: [0; SERVICES],
            current: [[0; SERVICES]; WORKERS],
            requests: BTreeMap::new(),
            counted: Default::default(),
            flows: Default::default(),
            unique_offered: [0; WORKERS],
            now: Instant::from_secs(1_000),
            decisions: Vec::new(),
            spent: Vec::new(),
            epoch: 0,
            has_ceiling_candidate: [false; WORKERS],
            agreements: Default::default(),
            next_id: 0,
        };
        if setup.has_ceiling_twins {
            for worker in 0..WORKERS {
                world.set_ceiling_candidate(worker, true);
                // Both first samples begin now.
                world.pipelines[worker].drain_flash_crowd(world.now);
            }
        }
        for service in 0..SERVICES {
            world.add_version(service, SentryMode::Live);
            (0..WORKERS).for_each(|worker| world.take_over(worker, service));
        }
        // Twice, because the buckets of ceilings begin empty.
        for _ in 0..2 {
            (0..WORKERS).for_each(|worker| world.apply_ceiling(worker, 0, false));
            world.now += Duration::from_secs(1);
        }
        let is_shadow = setup.ceiling == Some(CeilingMode::ShadowRefusesAll);
        world.pipelines.iter_mut().for_each(|pipeline| {
            pipeline.configure(usize::MAX, FlashCrowdOptions { is_shadow, ..FlashCrowdOptions::default() })
        });
        world
    }

    /// Does one operation; what it is about is drawn from what there is.
    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Arrive { worker, service, class, client, is_closed } => {
                self.arrive(worker, service, class, client, is_closed);
            }
            Op::Next { worker, service } => {
                let version = self.current[worker][service];
                self.next(worker, version);
            }
            Op::Settle { worker, service } => {
                let version = self.current[worker][service];
                self.settle(worker, version);
            }
            Op::Leave { which } => {
                let waiting = |request: &Request| matches!(request.state, State::Waiting(_));
                if let Some(id) = self.pick(which, waiting) {
                    self.leave(id);
                }
            }
            Op::LeaveAgain { which } => {
                if let Some(&(worker, ticket)) = self.spent.get(which % self.spent.len().max(1)) {
                    assert_eq!(self.pipelines[worker].leave(self.now, ticket), None, "a spent ticket");
                }
            }
            Op::TakeShare { which } => {
                if let Some(id) = self.pick(which, |request| request.has_untaken_share()) {
                    self.take_share(id);
                }
            }
            Op::EndAtOrigin { which, outcome } => {
                if let Some(id) = self.pick(which, |request| request.share().is_some()) {
                    self.end_at_origin(id, outcome);
                }
            }
            Op::Pause { which, is_resume } => {
                let fits =
                    |request: &Request| request.share().is_some_and(|share| share.is_paused() == is_resume);
                if let Some(id) = self.pick(which, fits) {
                    self.pause(id, is_resume);
                }
            }
            Op::Finish { which, outcome } => {
                let has_permit =
                    |request: &Request| matches!(request.state, State::Admitted { permit: Some(_), .. });
                if let Some(id) = self.pick(which, has_permit) {
                    self.finish(id, outcome);
                }
            }
            Op::Ceiling { worker, limit, is_stale } => self.apply_ceiling(worker, limit, is_stale),
            Op::SentryPlan { service, limiting, worker, is_stale } => {
                self.plan_sentry(service, limiting, worker, is_stale);
            }
            Op::Configure { worker, in_gateway_max, is_shadow } => {
                let is_shadow = match self.setup.ceiling {
                    None => is_shadow,
                    Some(mode) => mode == CeilingMode::ShadowRefusesAll,
                };
                self.pipelines[worker].configure(
                    in_gateway_max,
                    FlashCrowdOptions { is_shadow, ..FlashCrowdOptions::default() },
                );
            }
            Op::Capacity { worker, service, capacity } => {
                let key = self.key(worker, self.current[worker][service]);
                self.pipelines[worker].set_upstream_capacity(key, capacity);
            }
            Op::Reload { service, mode } => self.add_version(service, mode),
            Op::TakeOver { worker, service } => self.take_over(worker, service),
            Op::Candidate { worker, service, is_set } => self.set_candidate(worker, service, is_set),
            Op::CeilingCandidate { worker, limit, is_stale } => {
                self.plan_ceiling_candidate(worker, limit, is_stale);
            }
            Op::BetweenNodes { worker, service, discards_from, discards_excess, rate_milli } => {
                let key = self.key(worker, self.current[worker][service]);
                let pipeline = &mut self.pipelines[worker];
                pipeline.apply_ladder(key, Orders { discards_from, discards_excess });
                let restriction = rate_milli.map(|rate_milli| Restriction {
                    from_rank: 1,
                    severity: 1,
                    rate: Rate::from_milli(rate_milli),
                });
                pipeline.apply_gapping(self.now, key, restriction);
            }
            Op::Clock { forward, back } => {
                self.now = self.now + forward - back;
            }
            Op::Drain { worker, service } => self.drain(worker, self.current[worker][service]),
        }
    }

    pub(crate) fn key(&self, worker: usize, version: usize) -> ServiceKey {
        self.services[version].at[worker].key.expect("the version in force")
    }

    pub(crate) fn arrive(
        &mut self,
        worker: usize,
        service: usize,
        class: usize,
        client: u64,
        is_closed: bool,
    ) -> u64 {
        let version = self.current[worker][service];
        let is_exempt = class == CLASSES;
        let class = class.min(CLASSES - 1);
        let id = self.next_id;
        self.next_id += 1;
        let client_key = client.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let asked = SentryRequest {
            class: class as u8,
            url_class: client as u32,
            client_key,
            ..SentryRequest::default()
        };
        let asking = match client {
            10 => Asking::Again,
            11 => Asking::Refresh,
            _ => Asking::First,
        };
        let is_counted = asking == Asking::First;
        let request = AdmissionRequest {
            service: self.key(worker, version),
            class: class as u8,
            ceiling_priority: match class {
                _ if is_exempt => CeilingPriority::Exempt,
                0 => CeilingPriority::FIRST,
                1 => CeilingPriority::Credit { milli: 500 },
                _ => CeilingPriority::LAST,
            },
            client_key,
            url_class: client as u32,
            host_key: service as u64,
            person_key: client_key,
            candidate: (!is_exempt && is_counted).then_some(asked),
            is_beyond_sender_share: client % 4 == 3,
            deadline: (client % 5 == 4).then_some(self.now + DEADLINE),
            closed: is_closed.then_some(Reason::Draining),
            // A few clients share an address, and every second one behaves like a person.
            signs: RequestSigns {
                person_key: client_key | 1,
                conduct: Conduct {
                    is_asset: true,
                    has_own_referer: client.is_multiple_of(2),
                    has_session: true,
                },
                values: [1 + (client % 3) as u32; SIGNS],
            },
            asking,
        };
        for counted in self.counts(worker, version) {
            counted.offered += u64::from(is_counted);
        }
        let deadline = request.deadline;
        let new = |state| Request { worker, service: version, class, is_exempt, is_counted, deadline, state };
        match self.pipelines[worker].arrive(self.now, request, id) {
            Arrival::Admitted(permit, _) => {
                self.requests.insert(id, new(State::admitted(permit)));
                self.count_admitted(id, worker, version);
            }
            Arrival::Queued(ticket, displaced) => {
                self.decisions.push(Decision::Queued(id));
                self.requests.insert(id, new(State::Waiting(ticket)));
                if let Some((other, refusal)) = displaced {
                    self.refuse_waiting(other, &refusal);
                }
            }
            Arrival::Refused(refusal) => {
                let decision = Decision::Refused(id, refusal.stage, refusal.shed.reason);
                self.count_refused(decision, worker, version, is_counted);
            }
        }
        id
    }

    /// Asks for the next request of this version; whether there was one.
    pub(crate) fn next(&mut self, worker: usize, version: usize) -> bool {
        let Some(key) = self.services[version].at[worker].key else { return false };
        match self.pipelines[worker].next(self.now, key) {
            None => return false,
            Some(Released::Admitted(id, permit, _)) => {
                self.count_admitted(id, worker, version);
                let request = self.requests.get_mut(&id).expect("it waited");
                let before = std::mem::replace(&mut request.state, State::admitted(permit));
                let State::Waiting(ticket) = before else { panic!("admitted twice") };
                self.spent.push((worker, ticket));
            }
            Some(Released::Refused(id, refusal)) => {
                self.refuse_waiting(id, &refusal);
            }
        }
        true
    }

    /// As a shell does after every end: the next until there is none, then the worker that may have one.
    pub(crate) fn settle(&mut self, mut worker: usize, version: usize) {
        /// Each hop but the last few releases a request.
        const HOPS_MAX: usize = 1_000;
        for _ in 0..HOPS_MAX {
            while self.next(worker, version) {}
            let Some(key) = self.services[version].at[worker].key else { return };
            match self.pipelines[worker].who_waits(key) {
                Some(other) => worker = other,
                None => return self.check_room_is_used(version),
            }
        }
        assert!(!self.follows_one_plan(version), "workers wake each other for ever");
    }

    pub(crate) fn leave(&mut self, id: u64) {
        let request = &self.requests[&id];
        let State::Waiting(ticket) = request.state else { panic!("it waits") };
        let (worker, version, left) = (request.worker, request.service, u64::from(request.is_counted));
        if request.deadline.is_some_and(|deadline| self.now >= deadline) {
            return self.expire(id, ticket);
        }
        assert_eq!(self.pipelines[worker].leave(self.now, ticket), Some(id));
        self.decisions.push(Decision::Left(id));
        for counted in self.counts(worker, version) {
            counted.left += left;
        }
        self.remove_waiting(id);
    }

    /// The deadline of a request that waits is over before its client leaves.
    fn expire(&mut self, id: u64, ticket: Ticket) {
        let worker = self.requests[&id].worker;
        let (expired, refusal) = self.pipelines[worker].expire(self.now, ticket).expect("it waits");
        assert_eq!((expired, refusal.shed.reason), (id, Reason::CallerDeadline));
        self.refuse_waiting(id, &refusal);
    }

    pub(crate) fn take_share(&mut self, id: u64) {
        if let State::Admitted { permit: Some(permit), share, is_share_taken } = self.state(id) {
            (*share, *is_share_taken) = (permit.take_origin_share(), true);
            assert!(share.is_some() && permit.take_origin_share().is_none());
        }
    }

    pub(crate) fn end_at_origin(&mut self, id: u64, outcome: RequestOutcome) {
        let worker = self.requests[&id].worker;
        if let State::Admitted { share, .. } = self.state(id)
            && let Some(share) = share.take()
        {
            self.pipelines[worker].end_at_origin(self.now, share, outcome);
        }
        self.remove_if_over(id);
    }

    fn pause(&mut self, id: u64, is_resume: bool) {
        let (worker, now) = (self.requests[&id].worker, self.now);
        let request = self.requests.get_mut(&id).expect("it is there");
        if let State::Admitted { share: Some(share), .. } = &mut request.state {
            let pipeline = &mut self.pipelines[worker];
            if is_resume { pipeline.resume(now, share) } else { pipeline.pause(now, share) }
        }
    }

    pub(crate) fn finish(&mut self, id: u64, outcome: RequestOutcome) {
        let (worker, version) = (self.requests[&id].worker, self.requests[&id].service);
        if let State::Admitted { permit, .. } = self.state(id)
            && let Some(permit) = permit.take()
        {
            let (pipeline, now) = (&mut self.pipelines[worker], self.now);
            if let Some(delivery) = pipeline.finish(now, permit, outcome) {
                pipeline.deliver(delivery, !id.is_multiple_of(3));
                pipeline.observe_response(Response {
                    started: now - Duration::from_millis(id % 5_000),
                    bytes: 1_000,
                    latency_s: (id % 7) as f32 / 10.0,
                    rate_bytes_per_s: id.is_multiple_of(2).then_some(1e5),
                    url_class: id as u32 % 3,
                });
            }
            let is_completed = matches!(outcome, RequestOutcome::Completed(_));
            for counted in self.counts(worker, version) {
                counted.ended += 1;
                counted.completed += u64::from(is_completed);
            }
        }
        self.remove_if_over(id);
    }

    fn pick(&self, which: usize, fits: impl Fn(&Request) -> bool) -> Option<u64> {
        let fitting = || self.requests.iter().filter(|(_, request)| fits(request));
        let count = fitting().count();
        fitting().nth(which % count.max(1)).map(|(&id, _)| id)
    }

    fn state(&mut self, id: u64) -> &mut State {
        &mut self.requests.get_mut(&id).expect("it is there").state
    }

    fn counts(&mut self, worker: usize, version: usize) -> [&mut Counted; 2] {
        [&mut self.counted[worker], &mut self.services[version].at[worker].counted]
    }

    fn count_admitted(&mut self, id: u64, worker: usize, version: usize) {
        self.decisions.push(Decision::Admitted(id));
        let Request { class, is_exempt, is_counted, .. } = self.requests[&id];
        let again = u64::from(!is_counted);
        for counted in self.counts(worker, version) {
            counted.admitted += 1;
            counted.again += again;
        }
        self.services[version].at[worker].again[class] += again * u64::from(!is_exempt);
    }

    fn refuse_waiting(&mut self, id: u64, refusal: &Refusal) {
        let Request { worker, service, is_counted, .. } = self.requests[&id];
        let decision = Decision::Refused(id, refusal.stage, refusal.shed.reason);
        self.count_refused(decision, worker, service, is_counted);
        self.remove_waiting(id);
    }

    fn count_refused(&mut self, decision: Decision, worker: usize, version: usize, is_counted: bool) {
        if let Decision::Refused(_, stage, _) = decision {
            for counted in self.counts(worker, version) {
                counted.refused[stage as usize] += u64::from(is_counted);
            }
        }
        self.decisions.push(decision);
    }

    fn remove_waiting(&mut self, id: u64) {
        if let Some(Request { worker, state: State::Waiting(ticket), .. }) = self.requests.remove(&id) {
            self.spent.push((worker, ticket));
        }
    }

    fn remove_if_over(&mut self, id: u64) {
        if let State::Admitted { permit: None, share: None, .. } = self.state(id) {
            self.requests.remove(&id);
        }
    }
}

impl Request {
    pub(crate) fn has_untaken_share(&self) -> bool {
        matches!(self.state, State::Admitted { permit: Some(_), is_share_taken: false, .. })
    }

    pub(crate) fn share(&self) -> Option<&OriginShare> {
        if let State::Admitted { share, .. } = &self.state { share.as_ref() } else { None }
    }
}

impl State {
    fn admitted(permit: Permit) -> Self {
        Self::Admitted { permit: Some(permit), share: None, is_share_taken: false }
    }
}
