//! What the control thread looks at again and again: certificates on disk, and the health of the upstreams.

use crate::shared::Shared;
use flashweir_config::Service;
use flashweir_core::{Duration, Instant};
use flashweir_http::upstream::{UpstreamShared, probe};
use flashweir_telemetry::{Happening, Outcome, UpstreamHealth};
use http::Uri;
use std::sync::Arc;
use tokio::task::spawn_local;

/// A renewed certificate is in use within this time; looking costs two `stat` calls.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the upstreams' availability is copied into the metrics.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);

/// Takes over renewed certificates until the future is dropped.
pub(crate) async fn watch_certificates(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(CERTIFICATE_INTERVAL).await;
        let Some(tls) = shared.live.load().tls.clone() else { continue };
        let outcome = match tls.reload_if_changed() {
            Ok(false) => continue,
            Ok(true) => {
                tracing::info!("the certificate was reloaded");
                Outcome::Ok
            }
            Err(error) => {
                shared.warn(Happening::Certificate, format_args!("{error}; the certificate in use is kept"));
                Outcome::Failed
            }
        };
        shared.telemetry.control().certificate_reloads.increment(outcome);
    }
}

/// How often the number of connections is looked at.
const MEMORY_INTERVAL: Duration = Duration::from_secs(2);
/// Connections that have ended since the peak, at least, before memory is given back: they held some megabytes.
const CONNECTIONS_GONE: usize = 128;

/// Then once more: idle connections to servers go some seconds after the clients'.
const LOOKS_UNTIL_AGAIN: u32 = 5;

/// Gives memory back after a flood of connections; the allocator would keep all that it had at the peak.
pub(crate) async fn watch_memory(shared: Arc<Shared>) {
    let mut looks_left = 0;
    loop {
        tokio::time::sleep(MEMORY_INTERVAL).await;
        let (open, peak) = (shared.bounds.connections(), shared.bounds.peak_connections());
        let is_flood_over = open <= peak / 2 && peak.saturating_sub(open) >= CONNECTIONS_GONE;
        if is_flood_over || looks_left == 1 {
            flashweir_kernel::return_free_memory();
        }
        if is_flood_over {
            shared.bounds.forget_peak();
            looks_left = LOOKS_UNTIL_AGAIN;
        } else {
            looks_left = looks_left.saturating_sub(1);
        }
    }
}

/// What was last known of one service's upstreams.
#[derive(PartialEq, Eq)]
struct Watched {
    service: String,
    asked_at: Instant,
    healthy: Vec<bool>,
}

/// Asks the upstreams for their health where that is configured, and publishes what is known of them.
pub(crate) async fn watch_upstreams(shared: Arc<Shared>) {
    let mut before: Vec<Watched> = Vec::new();
    loop {
        let live = shared.live.load_full();
        let mut pause = HEALTH_INTERVAL;
        let mut watched = Vec::with_capacity(before.len());
        for (service, upstreams) in live.services() {
            let known = before.iter().find(|known| known.service == service.name);
            let active = service.upstream.health.active.as_ref();
            pause = active.map_or(pause, |active| pause.min(active.interval));
            watched.push(look(&shared, known, service, upstreams));
        }
        if watched != before {
            shared.telemetry.control().publish_upstream_health(&told(&watched));
        }
        before = watched;
        drop(live);
        tokio::time::sleep(pause).await;
    }
}

/// Asks if it is time to, and tells what changed.
fn look(
    shared: &Shared,
    known: Option<&Watched>,
    service: &Service,
    upstreams: &Arc<UpstreamShared>,
) -> Watched {
    let now = shared.clock.now();
    let mut asked_at = known.map_or(now, |known| known.asked_at);
    if let Some(active) = &service.upstream.health.active
        && now >= asked_at + active.interval
        && let Ok(path) = active.path.parse::<Uri>()
    {
        asked_at = now;
        for index in 0..service.upstream.urls.len() {
            let (upstreams, path, within) = (upstreams.clone(), path.clone(), active.timeout);
            // One at a time and upstream: the timeout is at most the interval.
            spawn_local(async move {
                let passed = probe(&upstreams, index, &path, within).await.is_ok();
                upstreams.record_probe(index, passed);
            });
        }
    }
    let healthy: Vec<bool> = upstreams.statuses().iter().map(|status| status.is_available).collect();
    if let Some(known) = known
        && known.healthy != healthy
    {
        let (out, of) = (healthy.iter().filter(|healthy| !**healthy).count(), healthy.len());
        let message = format_args!("{out} of {of} upstreams of service {} are left out now", service.name);
        shared.warn(Happening::UpstreamHealth, message);
    }
    Watched { service: service.name.clone(), asked_at, healthy }
}

/// What the metrics say of it.
fn told(watched: &[Watched]) -> Vec<UpstreamHealth> {
    let of_service = |watched: &Watched| {
        let healthy = watched.healthy.iter().enumerate();
        let told = healthy.map(|(place, &is_in_use)| UpstreamHealth {
            service: watched.service.clone(),
            place,
            is_in_use,
        });
        told.collect::<Vec<_>>()
    };
    watched.iter().flat_map(of_service).collect()
}
