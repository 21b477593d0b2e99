//! What the control thread looks at again and again: certificates on disk, and the health of the upstreams.

use crate::shared::Shared;
use flashweir_core::Duration;
use flashweir_http::upstream::probe;
use flashweir_telemetry::{Happening, Outcome};
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

/// Asks the upstreams for their health where that is configured, and publishes what is known of them.
pub(crate) async fn watch_upstreams(shared: Arc<Shared>) {
    let mut known: Vec<bool> = Vec::new();
    let mut asked_at = shared.clock.now();
    loop {
        let live = shared.live.load_full();
        let now = shared.clock.now();
        let active = live.config.upstream.health.active.clone();
        if let Some(active) = &active
            && now >= asked_at + active.interval
            && let Ok(path) = active.path.parse::<Uri>()
        {
            asked_at = now;
            for index in 0..live.config.upstream.urls.len() {
                let (upstreams, path, within) = (live.upstreams.clone(), path.clone(), active.timeout);
                // One at a time and upstream: the timeout is at most the interval.
                spawn_local(async move {
                    let passed = probe(&upstreams, index, &path, within).await.is_ok();
                    upstreams.record_probe(index, passed);
                });
            }
        }
        let healthy: Vec<bool> = live.upstreams.statuses().iter().map(|status| status.is_available).collect();
        if healthy != known {
            tell(&shared, &known, &healthy);
            known = healthy;
            shared.telemetry.control().publish_upstream_health(&known);
        }
        drop(live);
        let pause = active.map_or(HEALTH_INTERVAL, |active| active.interval.min(HEALTH_INTERVAL));
        tokio::time::sleep(pause).await;
    }
}

fn tell(shared: &Shared, before: &[bool], after: &[bool]) {
    if before.is_empty() {
        return;
    }
    let out = after.iter().filter(|healthy| !**healthy).count();
    let of = after.len();
    shared.warn(Happening::UpstreamHealth, format_args!("{out} of {of} upstreams are left out now"));
}
