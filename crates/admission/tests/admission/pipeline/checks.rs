//! Checks after every operation, and after the last request has ended.

use crate::pipeline::ops::SentryMode;
use crate::pipeline::world::{
    CLASSES, Counted, Request, SERVICES, Service, ServiceAtWorker, State, WORKERS, World,
};
use flashweir_admission::Flow;
use flashweir_admission::pipeline::{FlashCrowdOptions, Ledger, OriginReport, RequestOutcome, StageName};
use flashweir_admission::sentry::Decide;
use flashweir_admission::sentry::Position;
use flashweir_core::Duration;

impl World {
    /// Conservation: nothing is lost, nothing is counted twice, by any worker or service.
    pub(crate) fn check(&self) {
        for worker in 0..WORKERS {
            let waiting = self.waiting(|request| request.worker == worker && request.is_counted);
            check_ledger(self.pipelines[worker].ledger(), &self.counted[worker], waiting);
        }
        for (version, service) in self.services.iter().enumerate() {
            (0..WORKERS).for_each(|worker| self.check_service_at(worker, version));
            self.check_shared_counts(version, service);
        }
        let places = self.requests.values().filter(|request| match &request.state {
            State::Waiting(_) => true,
            State::Admitted { permit, .. } => permit.is_some(),
        });
        assert_eq!(self.shared.in_gateway.get(), places.count(), "requests in the gateway");
    }

    /// A service is there until it is retired and its last request has ended, with its own ledger.
    fn check_service_at(&self, worker: usize, version: usize) {
        let (at, pipeline) = (&self.services[version].at[worker], &self.pipelines[worker]);
        let Some(key) = at.key else { return };
        let is_of = |request: &Request| request.worker == worker && request.service == version;
        let has_requests = self.requests.values().any(is_of);
        let is_there = !at.is_retired || has_requests;
        assert_eq!(pipeline.has_service(key), is_there, "version {version} at worker {worker}");
        if !is_there {
            assert_eq!(pipeline.service_ledger(key), None, "the ledger of a service that is gone");
            return;
        }
        let waiting = self.waiting(|request| is_of(request) && request.is_counted);
        check_ledger(pipeline.service_ledger(key).expect("it is there"), &at.counted, waiting);
        assert_eq!(pipeline.waiting(key) as u64, self.waiting(is_of));
    }

    /// Slots and places in queues that all workers share.
    fn check_shared_counts(&self, version: usize, service: &Service) {
        let slots = self.requests.values().filter(|request| {
            let holds_share =
                request.has_untaken_share() || request.share().is_some_and(|share| !share.is_paused());
            let has_sentry = service.mode != SentryMode::Off && !request.is_exempt;
            request.service == version && holds_share && has_sentry
        });
        assert_eq!(service.common.in_flight() as usize, slots.count(), "slots of version {version}");
        for class in 0..CLASSES {
            let waiting = self.waiting(|request| request.service == version && request.class == class);
            assert_eq!(u64::from(service.common.held(class)), waiting, "version {version}, class {class}");
        }
    }

    /// After a wake-up has gone through all workers, no request waits while there is room for it.
    pub(crate) fn check_room_is_used(&self, version: usize) {
        let service = &self.services[version];
        if !self.follows_one_plan(version) {
            return;
        }
        // For clients over their share there is less room.
        let waits = |class: usize| {
            [Position::Usual, Position::HotSpot].iter().any(|&at| service.common.held_at(class, at) > 0)
        };
        let first = (0..CLASSES).find(|&class| waits(class));
        if let Some(first) = first {
            let limit = service.plan.classes[first].limit;
            let in_flight = service.common.in_flight();
            assert!(in_flight >= limit, "{in_flight} of {limit} at the origin while class {first} waits");
        }
    }

    /// By reservation, and the same at every worker.
    pub(crate) fn follows_one_plan(&self, version: usize) -> bool {
        let service = &self.services[version];
        let is_same = |at: &ServiceAtWorker| at.plan_epoch == service.plan.epoch;
        let everywhere = service.at.iter().all(|at| at.key.is_none() || is_same(at));
        service.plan.decide == Decide::Reservation && everywhere
    }

    /// The samples of all stages add up to the ledgers.
    pub(crate) fn drain(&mut self, worker: usize, version: usize) {
        let (now, pipeline) = (self.now, &mut self.pipelines[worker]);
        let sample = pipeline.drain_flash_crowd(now);
        self.flows[worker].add(&sample.flow);
        self.unique_offered[worker] += sample.unique_offered;
        check_flow(&self.flows[worker], pipeline.ledger(), StageName::FlashCrowd);
        assert_eq!(self.unique_offered[worker], pipeline.ledger().unique_offered);
        let candidate = pipeline.drain_flash_crowd_candidate(now);
        assert_eq!(candidate.is_some(), self.has_ceiling_candidate[worker]);
        if let Some((of_candidate, agreement)) = candidate {
            self.agreements[worker].add(&agreement);
            assert!(!self.setup.has_ceiling_twins || of_candidate == sample, "{of_candidate:?}, {sample:?}");
        }
        let uncounted = core::array::from_fn::<_, CLASSES, _>(|class| {
            self.waiting(|it| {
                (it.worker, it.service, it.class, it.is_counted) == (worker, version, class, false)
            })
        });
        let pipeline = &mut self.pipelines[worker];
        let at = &mut self.services[version].at[worker];
        let Some(key) = at.key else { return };
        let _compared = pipeline.drain_candidate(now, key);
        let Some(sample) = pipeline.drain_sentry(now, key) else { return };
        at.flow.add(&sample.flow);
        check_flow(&at.flow, pipeline.service_ledger(key).expect("it is there"), StageName::Sentry);
        for (class, counts) in sample.classes.iter().enumerate() {
            let sums = &mut at.sums[class];
            sums.offered += counts.offered;
            sums.admitted += counts.admitted;
            sums.refused += counts.shed + counts.shed_elsewhere;
            sums.left += counts.left;
            let accounted = sums.admitted + sums.refused + sums.left + u64::from(counts.held);
            assert_eq!(
                sums.offered + at.again[class] + uncounted[class],
                accounted,
                "class {class} of version {version} at worker {worker}"
            );
        }
    }

    /// Every request comes to its end; then every stage is as new.
    pub(crate) fn end_everything(&mut self) {
        let outcome = RequestOutcome::Completed(OriginReport::default());
        for id in self.requests.keys().copied().collect::<Vec<_>>() {
            match &self.requests[&id].state {
                State::Waiting(_) => self.leave(id),
                // Shares that were taken end before their requests, or after them.
                State::Admitted { .. } if id % 2 == 0 => {
                    self.end_at_origin_if_taken(id, outcome);
                    self.finish_if_there(id, outcome);
                }
                State::Admitted { .. } => {
                    self.finish_if_there(id, RequestOutcome::Abandoned);
                    self.end_at_origin_if_taken(id, RequestOutcome::Abandoned);
                }
            }
            self.check();
        }
        assert!(self.requests.is_empty());
        assert_eq!(self.shared.in_gateway.get(), 0);
        for worker in 0..WORKERS {
            assert_eq!(self.pipelines[worker].services().count(), SERVICES, "retired services are gone");
            let pipeline = &self.pipelines[worker];
            assert!(pipeline.services().all(|key| pipeline.next_wake(key).is_none()));
            for service in 0..SERVICES {
                self.check_as_new(worker, service);
            }
        }
    }

    fn check_as_new(&mut self, worker: usize, service: usize) {
        /// Fewer than any bound on requests in the gateway.
        const CAPACITY: usize = 5;
        let version = self.current[worker][service];
        let key = self.key(worker, version);
        self.drain(worker, version);
        assert_eq!(self.pipelines[worker].who_waits(key), None);
        assert_eq!((self.pipelines[worker].at_origin(key), self.pipelines[worker].waiting(key)), (0, 0));
        // Connections: exempt requests pass the other stages, and as many as there is capacity for are
        // admitted.
        self.pipelines[worker].configure(usize::MAX, FlashCrowdOptions::default());
        self.pipelines[worker].set_upstream_capacity(key, CAPACITY);
        let upstream = StageName::Upstream as usize;
        let refused = self.counted[worker].refused[upstream];
        let ids: Vec<u64> = (0..=CAPACITY).map(|_| self.arrive(worker, service, CLASSES, 1, false)).collect();
        assert_eq!(self.requests.len(), CAPACITY, "the capacity is back");
        assert_eq!(self.counted[worker].refused[upstream], refused + 1);
        for id in &ids[..CAPACITY] {
            self.finish(*id, RequestOutcome::Withdrawn);
        }
        self.check();
    }

    /// Virtual requests of candidates end, too: at the latest when each would have been over, as estimated.
    pub(crate) fn check_candidates_end(&mut self) {
        self.now += Duration::from_secs(1_000_000);
        for _ in 0..2 {
            for worker in 0..WORKERS {
                (0..SERVICES).for_each(|service| self.drain(worker, self.current[worker][service]));
            }
        }
        for (worker, pipeline) in self.pipelines.iter().enumerate() {
            for service in 0..SERVICES {
                let key = self.key(worker, self.current[worker][service]);
                assert_eq!(pipeline.at_origin_of_candidate(key), 0);
            }
        }
    }

    fn end_at_origin_if_taken(&mut self, id: u64, outcome: RequestOutcome) {
        if self.requests.get(&id).is_some_and(|request| request.share().is_some()) {
            self.end_at_origin(id, outcome);
        }
    }

    fn finish_if_there(&mut self, id: u64, outcome: RequestOutcome) {
        let request = self.requests.get(&id);
        if request.is_some_and(|request| matches!(request.state, State::Admitted { permit: Some(_), .. })) {
            self.finish(id, outcome);
        }
    }

    fn waiting(&self, fits: impl Fn(&Request) -> bool) -> u64 {
        let is_waiting = |request: &&Request| matches!(request.state, State::Waiting(_));
        self.requests.values().filter(is_waiting).filter(|request| fits(request)).count() as u64
    }
}

fn check_ledger(ledger: &Ledger, counted: &Counted, waiting: u64) {
    let Ledger { offered, unique_offered, admitted, again, refused, left, ended } = *ledger;
    assert_eq!(again, counted.again);
    assert_eq!(offered + again, admitted + ledger.shed() + left + waiting, "{ledger:?}, {waiting} waiting");
    assert!(unique_offered <= offered);
    let known = (counted.offered, counted.admitted, counted.refused, counted.left, counted.ended);
    assert_eq!((offered, admitted, refused, left, ended), known);
}

/// A stage's flow, summed over its samples: each refusal is its own, an earlier stage's or a later stage's.
fn check_flow(flow: &Flow, ledger: &Ledger, stage: StageName) {
    let place = stage as usize;
    let expected = Flow {
        offered: ledger.offered,
        admitted: ledger.admitted,
        refused_by_self: ledger.refused[place],
        refused_by_earlier: ledger.refused[..place].iter().sum(),
        refused_by_later: ledger.refused[place + 1..].iter().sum(),
    };
    assert_eq!(*flow, expected, "{}", stage.as_str());
    let refused = flow.refused_by_self + flow.refused_by_earlier + flow.refused_by_later;
    assert_eq!(refused, ledger.shed());
}
