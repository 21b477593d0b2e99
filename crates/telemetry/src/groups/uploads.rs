//! Requests' bodies that are waited for.

use crate::counter::{Counter, CounterSet};
use crate::group::{Scrape, WorkerGroup, sum};
use crate::label::labels;

/// Requests' bodies that are waited for: gathered before their request is admitted, or holding an upstream
/// connection.
#[derive(Debug, Default)]
pub struct UploadMetrics {
    /// Bodies whose first part was waited for.
    pub gather_begun: Counter,
    /// Bodies whose first part came, or that were given up.
    pub gather_ended: Counter,
    /// Uploads whose client was waited for while they held an upstream connection.
    pub hold_begun: Counter,
    /// Held uploads that ended.
    pub hold_ended: Counter,
    /// Uploads answered 408, by the bound that was met.
    pub cut: CounterSet<UploadCut>,
}

impl WorkerGroup for UploadMetrics {
    const TITLE: &'static str = "Uploads";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Bodies whose first part is waited for, before anything else is done for their request.";
        scrape.gauge("uploads_gathering", help, open(copies, |u| &u.gather_ended, |u| &u.gather_begun));
        let help = "Uploads that hold an upstream connection and whose client was waited for.";
        scrape.gauge("uploads_holding", help, open(copies, |u| &u.hold_ended, |u| &u.hold_begun));
        let help = "Uploads answered 408 because they were the slowest where a bound was met, or too late.";
        scrape.counter_set("uploads_cut", help, copies, |u| &u.cut);
    }
}

type Which = fn(&UploadMetrics) -> &Counter;

fn open(copies: &[&UploadMetrics], ended: Which, begun: Which) -> f64 {
    // Ended before begun: read the other way round, one ending in between would go negative.
    let ended = sum(copies, ended);
    sum(copies, begun).saturating_sub(ended) as f64
}

labels! {
    /// Bound for which an upload was cut.
    UploadCut, "bound" {
        /// Too many bodies are waited for.
        Gathered => "gathered",
        /// Too many of one client.
        PerClient => "gathered_per_client",
        /// Too many bytes of bodies that are not whole.
        Bytes => "gathered_bytes",
        /// Too many uploads that are waited for hold upstream connections.
        Held => "held",
        /// Too many of one client.
        HeldPerClient => "held_per_client",
        /// The first part did not come within `upstream.response_header_timeout`.
        Timeout => "timeout",
    }
}
