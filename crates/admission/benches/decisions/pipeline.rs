//! Whole decisions: all stages, four classes, four workers' shared counts, with and without a candidate
//! policy beside.

use super::sentry::{GATES, plan};
use criterion::Criterion;
use flashweir_admission::flash_crowd::{self, CeilingPriority, Limit};
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, FlashCrowdOptions, OriginReport, Permit, Pipeline, RequestOutcome, ServiceKey,
    ServiceSettings, SharedByWorkers,
};
use flashweir_admission::sentry::{CandidateGate, Common, Decide, Position, SentryRequest};
use flashweir_core::{Duration, Instant, Rate, Rng};
use std::hint::black_box;
use std::sync::Arc;

const CLASSES: usize = 4;
/// Requests drawn beforehand: too many for branch prediction to learn them.
const REQUESTS: usize = 65_536;
const COMPLETED: RequestOutcome = RequestOutcome::Completed(OriginReport { measured_us: None });

struct Bench {
    pipeline: Pipeline<u64>,
    service: ServiceKey,
    /// From the bits of each one request is made: a table of requests would not stay in the cache.
    drawn: Vec<u64>,
    now: Instant,
    next: usize,
}

impl Bench {
    /// With this ceiling and this number of slots at the origin; 1,000 requests of each class may wait.
    fn new(ceiling_rps: f64, limit: u32, has_candidate: bool) -> Self {
        let (policy, plan) = plan(CLASSES as u64, Decide::Reservation, limit, 1_000);
        let common = Arc::new(Common::new(GATES));
        let mut pipeline = Pipeline::new(0, &SharedByWorkers::default());
        pipeline.configure(usize::MAX, FlashCrowdOptions::default());
        let sentry = Some((&common, &policy, &plan, false));
        let service = pipeline.add_service(ServiceSettings { sentry, upstream_capacity: usize::MAX });
        if has_candidate {
            let common = Arc::new(Common::new(GATES));
            pipeline.set_candidate(service, Some(CandidateGate::new(common, 0, &policy, &plan)));
        }
        let limit = Limit::All(Rate::from_per_second(ceiling_rps));
        let ceiling = flash_crowd::Plan { epoch: 1, limit, ..flash_crowd::Plan::open(GATES) };
        pipeline.apply_flash_crowd(Instant::ZERO, &ceiling);
        let mut rng = Rng::new(1);
        let drawn = (0..REQUESTS).map(|_| rng.next_u64()).collect();
        Self { pipeline, service, drawn, now: Instant::from_secs(1), next: 0 }
    }

    /// One more request, a little later.
    fn arrive(&mut self) -> Arrival<u64> {
        self.next = (self.next + 1) % REQUESTS;
        self.now += Duration::from_nanos(50);
        let drawn = self.drawn[self.next];
        let class = (drawn % CLASSES as u64) as u8;
        let asked = SentryRequest {
            class,
            url_class: (drawn >> 2) as u32,
            client_key: (drawn >> 20) % 500,
            position: Position::Usual,
            is_uncounted: false,
        };
        let request = AdmissionRequest {
            service: self.service,
            class,
            ceiling_priority: CeilingPriority::Credit { milli: 250 * u16::from(class) },
            client_key: asked.client_key,
            url_class: asked.url_class,
            host_key: drawn >> 60,
            person_key: drawn,
            candidate: Some(asked),
            is_beyond_sender_share: false,
            deadline: None,
            closed: None,
            signs: Default::default(),
            asking: Default::default(),
        };
        self.pipeline.arrive(self.now, request, 7)
    }

    /// Its client has the response as well.
    fn complete(&mut self, permit: Permit) {
        let delivery = self.pipeline.finish(self.now, permit, COMPLETED);
        delivery.into_iter().for_each(|delivery| self.pipeline.deliver(delivery, true));
    }
}

/// From arrival to end, by what becomes of the request.
pub(super) fn decisions(c: &mut Criterion) {
    const NO_CEILING: f64 = 1e9;
    for (with, has_candidate) in [("", false), (", and a candidate", true)] {
        let mut bench = Bench::new(NO_CEILING, 1_000_000, has_candidate);
        c.bench_function(&format!("pipeline, all stages, admitted and finished{with}"), |b| {
            b.iter(|| {
                let Arrival::Admitted(permit, _) = bench.arrive() else { unreachable!("there is room") };
                bench.complete(permit);
            });
        });
        let mut bench = Bench::new(0.001, 1_000_000, has_candidate);
        // What ceilings give on credit, and guarantees.
        while let Arrival::Admitted(permit, _) = bench.arrive() {
            bench.complete(permit);
        }
        c.bench_function(&format!("pipeline, refused by ceiling{with}"), |b| {
            b.iter(|| black_box(bench.arrive()));
        });
        let mut bench = Bench::new(NO_CEILING, 1, has_candidate);
        for _ in 0..20_000 {
            black_box(bench.arrive());
        }
        c.bench_function(&format!("pipeline, refused by the sentry with a full queue{with}"), |b| {
            b.iter(|| black_box(bench.arrive()));
        });
    }
}
