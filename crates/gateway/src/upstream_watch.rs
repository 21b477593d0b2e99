//! Work of the control thread for the upstreams: probes them where they are to be probed, ends states that
//! time ends, and publishes which are in use.

use crate::shared::Shared;
use flashweir_config::Service;
use flashweir_core::Duration;
use flashweir_core::limits::UPSTREAM_PROBES;
use flashweir_http::upstream::{
    OutCause, ProbeError, ProbeOutcome, SHARE_ONE, UpstreamShared, UpstreamStatus, probe, probe_outcome,
};
use flashweir_telemetry::{Happening, ProbeResult, UpstreamChanges, UpstreamHealth};
use http::Uri;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

/// Between two rounds while an upstream is out, doubtful or starting slowly: a probe that is due waits no
/// longer.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// Between two rounds otherwise; a failure is followed by a probe within this time.
const QUIET_INTERVAL: Duration = Duration::from_millis(500);

/// Last known state of one service's upstreams.
#[derive(PartialEq, Eq)]
struct Watched {
    service: String,
    available: Vec<bool>,
}

/// Looks after the upstreams of all services until the future is dropped.
pub(crate) async fn watch_upstreams(shared: Arc<Shared>) {
    let mut before: Vec<Watched> = Vec::new();
    let probes = Arc::new(Semaphore::new(UPSTREAM_PROBES));
    let mut is_start = true;
    loop {
        let live = shared.live.load_full();
        let mut pause = QUIET_INTERVAL;
        let (mut watched, mut health, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for (service, upstreams) in live.services() {
            if !upstreams.refresh() {
                pause = pause.min(BUSY_INTERVAL);
            }
            let interval = service.upstream.health.active.as_ref().map(|active| active.interval);
            pause = pause.min(interval.unwrap_or(pause));
            start_probes(&shared, &probes, service, upstreams, is_start);
            let statuses = upstreams.statuses();
            watched.push(report_changes(&shared, &before, service, &statuses));
            health.extend(statuses.iter().enumerate().map(|(place, status)| UpstreamHealth {
                service: service.name.clone(),
                place,
                is_in_use: status.is_available(),
                share_ratio: f64::from(status.share) / f64::from(SHARE_ONE),
            }));
            changes.push(changes_of(service, upstreams));
        }
        shared.telemetry.control().publish_upstreams(health, changes);
        (before, is_start) = (watched, false);
        drop(live);
        if probes.available_permits() < UPSTREAM_PROBES {
            // The first to end may be the first of two that are needed.
            pause = pause.min(BUSY_INTERVAL);
        }
        tokio::time::sleep(pause).await;
    }
}

/// Starts the probes that are due, as far as there is room; those without come in a later round. At the start
/// each that fails is logged: a wrong address is to be seen before the first request.
fn start_probes(
    shared: &Arc<Shared>,
    room: &Arc<Semaphore>,
    service: &Service,
    upstreams: &Arc<UpstreamShared>,
    is_start: bool,
) {
    let active = service.upstream.health.active.as_ref();
    // Checked with the configuration.
    let path = active.and_then(|active| active.path.parse::<Uri>().ok());
    let within = active.map_or(service.upstream.connect_timeout, |active| active.timeout);
    if room.available_permits() == 0 {
        shared.telemetry.control().count_probe(ProbeResult::Postponed);
        return;
    }
    for index in upstreams.probes_due(room.available_permits()) {
        let Ok(permit) = room.clone().try_acquire_owned() else { return };
        let (shared, upstreams, path) = (shared.clone(), upstreams.clone(), path.clone());
        let named = is_start.then(|| (service.name.clone(), service.upstream.urls.get(index).cloned()));
        spawn_local(async move {
            let _permit = permit;
            let probed = probe(&upstreams, index, path.as_ref(), within).await;
            if let (Err(error), Some((service, Some(url)))) = (&probed, named) {
                warn_of_failed_probe(&service, &url, error, path.as_ref());
            }
            let outcome = probe_outcome(path.is_some(), &probed);
            upstreams.record_probe(index, outcome);
            shared.telemetry.control().count_probe(match outcome {
                ProbeOutcome::Connected | ProbeOutcome::Answered => ProbeResult::Passed,
                ProbeOutcome::NoConnection => ProbeResult::NoConnection,
                ProbeOutcome::BadAnswer => ProbeResult::BadAnswer,
            });
        });
    }
}

/// Logs a probe at the start that failed, with what it asked for where that was more than a connection.
fn warn_of_failed_probe(service: &str, url: &Uri, error: &ProbeError, path: Option<&Uri>) {
    match (error, path) {
        (ProbeError::Status(_), Some(path)) => tracing::warn!(
            "upstream {url} of service {service}: {error} to GET {path} with the Host of its URL (upstream.health.path); \
             it gets no requests while another server is well"
        ),
        _ => tracing::warn!(
            "upstream {url} of service {service}: {error}; requests for it will fail until it is there"
        ),
    }
}

/// Logs how many upstreams of a service are out when that changed.
fn report_changes(
    shared: &Shared,
    before: &[Watched],
    service: &Service,
    statuses: &[UpstreamStatus],
) -> Watched {
    let available: Vec<bool> = statuses.iter().map(UpstreamStatus::is_available).collect();
    let known = before.iter().find(|known| known.service == service.name);
    if known.is_some_and(|known| known.available != available) {
        let (out, of) = (available.iter().filter(|is_available| !**is_available).count(), available.len());
        let message = format_args!("{out} of {of} upstreams of service {} are left out now", service.name);
        shared.warn(Happening::UpstreamHealth, message);
    }
    Watched { service: service.name.clone(), available }
}

fn changes_of(service: &Service, upstreams: &UpstreamShared) -> UpstreamChanges {
    let events = upstreams.events();
    let ejected = OutCause::ALL.iter().zip(events.ejected).map(|(cause, count)| (cause.as_str(), count));
    UpstreamChanges { service: service.name.clone(), ejected: ejected.collect(), returned: events.returned }
}
