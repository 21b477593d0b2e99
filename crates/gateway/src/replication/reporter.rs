//! Work of the control thread for a node of a cluster: a redirector's ticks, and a replica's reports.

use super::counts::Sample;
use super::report::{Orca, Orders, Report, ReportedDocument};
use super::routing::SAMPLE_EVERY;
use super::station::watermarks;
use crate::cache::{PurgeQuery, invalidate, invalidate_document};
use crate::exchange::{ExchangeError, exchange};
use crate::shared::Shared;
use bytes::Bytes;
use flashweir_config::{Replication, ReplicationRole, ReplicationRules};
use flashweir_core::limits::{REPORT_BYTES, REPORT_DOCUMENTS};
use flashweir_core::{Duration, Instant};
use flashweir_replication::ReportSchedule;
use flashweir_telemetry::{Happening, ReplicaReportOutcome};
use http::header::CONTENT_TYPE;
use http::{Request, Uri};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// A redirector answers within a millisecond; one that takes longer is stuck, and the next report is worth
/// more than this one.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The first report says that the replica is there; it waits for no interval.
const FIRST_REPORT_AFTER: Duration = Duration::from_millis(100);

/// Runs this node's part until the future is dropped.
pub(crate) async fn attend(shared: Arc<Shared>) {
    let config = shared.live.load().config.replication.clone();
    let Some(samples) = shared.replication.take_samples() else { return };
    match config.role {
        ReplicationRole::Redirector => place(&shared, samples).await,
        ReplicationRole::Replica if !config.report_to.is_empty() => {
            report_on(&shared, &config, samples).await;
        }
        _ => {}
    }
}

/// A redirector: counts, decides, publishes.
async fn place(shared: &Shared, mut samples: mpsc::Receiver<Sample>) {
    let mut ticks = ticks();
    loop {
        ticks.tick().await;
        let available = target_states(shared);
        let now = shared.clock.now();
        let Some(mut station) = shared.replication.station() else { return };
        while let Ok(sample) = samples.try_recv() {
            station.count(now, sample);
        }
        let outcome = station.tick(now, &available);
        drop(station);
        if let Some(plan) = outcome.plan.filter(|plan| *plan != **shared.replication.plan.load()) {
            shared.replication.plan.store(Arc::new(plan));
        }
        let control = shared.telemetry.control();
        for (change, count) in outcome.changes {
            control.replication.copies.add(change, count);
        }
        control.publish_replication(outcome.replicas, outcome.documents, outcome.is_full);
    }
}

/// State of each target, up or down, by its connections: the service of the targets is behind all others.
fn target_states(shared: &Shared) -> Vec<bool> {
    let live = shared.live.load();
    let targets = live.upstreams.last();
    targets.map(|it| it.statuses().iter().map(|status| status.is_available()).collect()).unwrap_or_default()
}

/// A replica: counts, and reports each interval, or at once when its load crosses a watermark.
async fn report_on(shared: &Arc<Shared>, config: &Replication, mut samples: mpsc::Receiver<Sample>) {
    let mut ticks = ticks();
    // As published, a replica reports each interval and at no other time.
    let early = (config.rules == ReplicationRules::Repaired).then(|| watermarks(config));
    let start = shared.clock.now();
    let mut schedule = ReportSchedule::new(start, start + FIRST_REPORT_AFTER, config.interval, early);
    let mut interval = Interval { since: start, ..Interval::default() };
    loop {
        ticks.tick().await;
        let now = shared.clock.now();
        let mut is_due = now >= schedule.next_at();
        while let Ok(sample) = samples.try_recv() {
            let offered = sample.documents.iter().map(|(_, count)| count.offered).sum::<u32>();
            (0..offered).for_each(|_| is_due |= schedule.arrive(now));
            interval.count(sample);
        }
        if !is_due {
            continue;
        }
        let load_rps = schedule.report(now);
        let report = Report {
            url: config.url.as_ref().map(ToString::to_string).unwrap_or_default(),
            orca: Orca {
                rps_fractional: load_rps,
                application_utilization: load_rps / config.high_watermark_rps,
            },
            in_flight: u32::try_from(shared.pipelines.in_gateway.get()).unwrap_or(u32::MAX),
            documents: interval.documents(now),
        };
        interval = interval.next(now);
        let Ok(body) = serde_json::to_vec(&report).map(Bytes::from) else { continue };
        for redirector in &config.report_to {
            spawn_local(tell(shared.clone(), redirector.clone(), body.clone()));
        }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// Counts of a replica since its last report.
#[derive(Default)]
struct Interval {
    since: Instant,
    documents: HashMap<u64, Counted>,
}

#[derive(Default)]
struct Counted {
    name: Option<Box<str>>,
    offered: u64,
    /// By worker, as of its last sample.
    in_flight: HashMap<usize, u32>,
    validator: u64,
}

impl Interval {
    fn count(&mut self, sample: Sample) {
        for (key, count) in sample.documents {
            // Bounded by the workers' own tables and the length of an interval: a report has the most wanted
            // only.
            if self.documents.len() >= DOCUMENTS_MAX && !self.documents.contains_key(&key) {
                continue;
            }
            let counted = self.documents.entry(key).or_default();
            counted.name = counted.name.take().or(count.name);
            counted.offered += u64::from(count.offered);
            counted.in_flight.insert(sample.worker, count.in_flight);
            if count.validator != 0 {
                counted.validator = count.validator;
            }
        }
    }

    fn documents(&self, now: Instant) -> Vec<ReportedDocument> {
        let elapsed_s = now.saturating_since(self.since).as_secs_f64().max(SAMPLE_EVERY.as_secs_f64());
        let mut all: Vec<&Counted> = self.documents.values().filter(|it| it.name.is_some()).collect();
        all.sort_by_key(|counted| std::cmp::Reverse(counted.offered));
        let reported = all.into_iter().take(REPORT_DOCUMENTS).map(|counted| ReportedDocument {
            name: counted.name.as_deref().unwrap_or_default().to_owned(),
            rate_rps: counted.offered as f64 / elapsed_s,
            in_flight: counted.in_flight.values().sum(),
            version: if counted.validator == 0 { String::new() } else { format!("{:x}", counted.validator) },
        });
        reported.collect()
    }

    /// Documents with requests in flight stay.
    fn next(mut self, now: Instant) -> Self {
        self.documents.retain(|_, counted| {
            counted.offered = 0;
            counted.in_flight.values().any(|count| *count > 0)
        });
        Self { since: now, documents: self.documents }
    }
}

/// Documents counted in one interval.
const DOCUMENTS_MAX: usize = flashweir_core::limits::REPLICATION_COUNTED * 4;

/// Sends a report and does what the answer says.
async fn tell(shared: Arc<Shared>, redirector: Uri, body: Bytes) {
    let request = Request::post("/replication/report").header(CONTENT_TYPE, "application/json");
    let answer = exchange(&redirector, request, body, (ANSWER_WITHIN, REPORT_BYTES)).await;
    let orders = answer.and_then(|body| Orders::parse(&body).ok_or(ExchangeError::Body));
    let control = shared.telemetry.control();
    let reports = &control.replication.reports;
    match orders {
        Ok(orders) => {
            reports.increment(ReplicaReportOutcome::Taken);
            obey(&shared, &orders);
        }
        Err(error) => {
            reports.increment(ReplicaReportOutcome::NotSent);
            shared.warn(Happening::Replication, format_args!("a redirector took no report: {error}"));
        }
    }
}

fn obey(shared: &Shared, orders: &Orders) {
    let mut purged = 0;
    for query in orders.purge.iter().filter_map(|query| PurgeQuery::parse(query).ok()) {
        purged += invalidate(shared, &query).unwrap_or(0);
    }
    purged += orders.invalidate.iter().map(|name| invalidate_document(shared, name)).sum::<usize>();
    if !orders.purge.is_empty() || !orders.invalidate.is_empty() {
        shared.telemetry.control().count_purge(Some(purged as u64));
    }
}
