//! Exchanges with upstreams, and which upstreams are in use.

use std::sync::{Mutex, PoisonError};

use super::ControlMetrics;
use crate::counter::{Counter, CounterSet};
use crate::group::{CounterRow, MetricGroup, Scrape, WorkerGroup, flag};
use crate::label::labels;

/// Exchanges with upstreams.
#[derive(Debug, Default)]
pub struct UpstreamMetrics {
    /// Failures by kind.
    pub failures: CounterSet<UpstreamFailure>,
    /// Requests tried again because they were provably never sent.
    pub retries: Counter,
    /// Fields in which upstreams tell of their load or of a request's time.
    pub load_reports: CounterSet<LoadReportOutcome>,
    /// Reports of utilisation, and those added up, in thousandths.
    pub reported_utilisations: Counter,
    /// See there.
    pub reported_utilisation_milli: Counter,
}

const TITLE: &str = "Upstreams";

impl WorkerGroup for UpstreamMetrics {
    const TITLE: &'static str = TITLE;

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Exchanges with an upstream that failed.";
        scrape.counter_set("upstream_failures", help, copies, |u| &u.failures);
        scrape.counters(
            copies,
            &[("upstream_retries", "Requests tried again because they were never sent.", |u| &u.retries)],
        );
        let help = "Load reports and request times that upstreams told (ORCA, Server-Timing), by use.";
        scrape.counter_set("upstream_load_reports", help, copies, |u| &u.load_reports);
        scrape.counters(copies, REPORTED);
    }
}

const REPORTED: &[CounterRow<UpstreamMetrics>] = &[
    ("upstream_reported_utilisations", "Utilisations that upstreams told.", |u| &u.reported_utilisations),
    ("upstream_reported_utilisation_milli", "Those added up, in thousandths.", |u| {
        &u.reported_utilisation_milli
    }),
];

/// Whether one upstream is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamHealth {
    /// The service it is of.
    pub service: String,
    /// Its place in the service's `upstream.urls`.
    pub place: usize,
    /// It gets requests; false while it is left out.
    pub is_in_use: bool,
}

/// Which upstreams are in use, as last told.
#[derive(Debug, Default)]
pub(crate) struct UpstreamsInUse(Mutex<Vec<UpstreamHealth>>);

impl ControlMetrics {
    /// Which upstreams are in use.
    pub fn publish_upstream_health(&self, healthy: &[UpstreamHealth]) {
        // Replaced whole, so a writer that panicked leaves nothing half-written.
        let mut known = self.upstreams_in_use.0.lock().unwrap_or_else(PoisonError::into_inner);
        healthy.clone_into(&mut known);
    }
}

impl MetricGroup for UpstreamsInUse {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let series = known.into_iter().map(|UpstreamHealth { service, place, is_in_use }| {
            (vec![service, place.to_string()], flag(is_in_use))
        });
        let help = "1 when in use, 0 when left out; by place in upstream.urls.";
        scrape.gauge_series("upstream_healthy", help, &["service", "upstream"], series);
    }
}

labels! {
    /// How an exchange with an upstream failed.
    UpstreamFailure, "kind" {
        /// No connection: refused, unreachable, name not found.
        Connect => "connect",
        /// No connection within `upstream.connect_timeout`.
        ConnectTimeout => "connect_timeout",
        /// The upstream's certificate or TLS handshake failed.
        Tls => "tls",
        /// No response head within `upstream.response_header_timeout`.
        HeaderTimeout => "header_timeout",
        /// Silence in the body beyond `upstream.body_idle_timeout`.
        BodyTimeout => "body_timeout",
        /// The connection was lost before the response's end.
        Reset => "reset",
        /// The response is not HTTP, or its length is a lie.
        Malformed => "malformed",
        /// The response's head has more fields (100) or bytes (512 KiB) than are taken.
        HeadTooLarge => "head_too_large",
        /// No upstream could be tried.
        NoUpstream => "no_upstream",
    }
    /// What a load report of an upstream was good for.
    LoadReportOutcome, "outcome" {
        /// It was read and used.
        Used => "used",
        /// It is in order, but says nothing that is asked for.
        Other => "other",
        /// It cannot be read.
        Malformed => "malformed",
        /// A number or a length in it makes no sense.
        OutOfRange => "out_of_range",
    }
}
