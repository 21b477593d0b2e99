//! Periodic checks on the control thread: certificates on disk, and memory after a flood of connections.

use crate::shared::Shared;
use flashweir_core::Duration;
use flashweir_http::tls::TlsError;
use flashweir_telemetry::{Happening, Outcome};
use std::fmt::Display;
use std::sync::Arc;

/// A renewed certificate is in use within this time; looking costs two `stat` calls.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(1);

/// Takes over renewed certificates, the gateway's own and those that vouch for its upstreams, until the
/// future is dropped.
pub(crate) async fn watch_certificates(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(CERTIFICATE_INTERVAL).await;
        let live = shared.live.load_full();
        if let Some(tls) = &live.tls {
            report_reload(&shared, tls.reload_if_changed(), "the certificate");
        }
        for (service, upstreams) in live.services() {
            let what = format_args!("the CA file of service {}", service.name);
            report_reload(&shared, upstreams.reload_trust_if_changed(), what);
        }
    }
}

/// Counts and logs a reload, if there was one.
fn report_reload(shared: &Shared, reloaded: Result<bool, TlsError>, what: impl Display) {
    let outcome = match reloaded {
        Ok(false) => return,
        Ok(true) => {
            tracing::info!("{what} was reloaded");
            Outcome::Ok
        }
        Err(error) => {
            shared.warn(Happening::Certificate, format_args!("{error}; {what} in use is kept"));
            Outcome::Failed
        }
    };
    shared.telemetry.control().certificate_reloads.increment(outcome);
}

/// Interval between two readings of the number of connections.
const MEMORY_INTERVAL: Duration = Duration::from_secs(2);
/// Connections that have ended since the peak, at least, before memory is given back: they held some
/// megabytes.
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
