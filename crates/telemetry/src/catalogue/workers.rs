//! The metrics that workers count.

use core::fmt;

use flashweir_core::Reason;

use super::{About, Catalogue, Sink, Values};
use crate::control::UpstreamHealth;
use crate::label::{
    BadRequest, Bound, ConnectionFailure, HttpVersion, LoadReportOutcome, StatusClass, Unmeasured,
    UpstreamFailure,
};

const UPSTREAM: &[&str] = &["service", "upstream"];

impl Catalogue {
    pub(super) fn visit_requests(&self, sink: &mut dyn Sink) -> fmt::Result {
        let counts = [
            (
                About::new("requests_offered", "Well-formed requests that arrived, retries included."),
                self.sum(|w| w.requests.offered.value()),
            ),
            (
                About::new(
                    "requests_unique_offered",
                    "People's attempts: requests offered, recognised retries folded.",
                ),
                self.sum(|w| w.requests.unique_offered.value()),
            ),
            (About::new("requests_admitted", "Requests let in."), self.sum(|w| w.requests.admitted.value())),
            (
                About::new("requests_held", "Requests that had to wait for room at the origin."),
                self.sum(|w| w.requests.held.value()),
            ),
            (
                About::new("requests_left", "Requests whose client left while they waited for room."),
                self.sum(|w| w.requests.left.value()),
            ),
            (
                About::new("requests_completed", "Admitted requests answered in full by an upstream."),
                self.sum(|w| w.requests.completed.value()),
            ),
            (
                About::new(
                    "requests_failed",
                    "Admitted requests that an upstream failed or had no connection for.",
                ),
                self.sum(|w| w.requests.failed.value()),
            ),
            (
                About::new("requests_abandoned", "Admitted requests whose client went away."),
                self.sum(|w| w.requests.abandoned.value()),
            ),
            (
                About::new(
                    "requests_shadow_shed",
                    "Requests that would have been refused but for shadow mode.",
                ),
                self.sum(|w| w.requests.shadow_shed.value()),
            ),
        ];
        for (about, count) in counts {
            sink.metric(about, Values::Counter(count))?;
        }
        sink.metric(
            About::labelled::<Reason>("requests_shed", "Requests refused, by the limit that was met."),
            self.sum_set(|w| &w.requests.shed),
        )?;
        sink.metric(
            About::labelled::<BadRequest>(
                "requests_bad",
                "Requests answered 4xx because they are malformed or too slow.",
            ),
            self.sum_set(|w| &w.requests.bad),
        )?;
        sink.metric(
            About::labelled::<HttpVersion>(
                "requests_by_protocol",
                "Well-formed requests by what the client speaks.",
            ),
            self.sum_set(|w| &w.requests.by_protocol),
        )?;
        sink.metric(
            About::new("requests_in_flight", "Requests admitted and not finished, tunnels included."),
            Values::Gauge(Some(self.requests_in_flight() as f64)),
        )?;
        sink.metric(
            About::labelled::<Bound>("bound_hits", "How often a bound was met."),
            self.sum_set(|w| &w.bound_hits),
        )
    }

    pub(super) fn visit_responses(&self, sink: &mut dyn Sink) -> fmt::Result {
        sink.metric(
            About::labelled::<StatusClass>("responses", "Responses by class of status, refusals included."),
            self.sum_set(|w| &w.responses.by_class),
        )?;
        sink.metric(
            About::in_seconds("request_duration", "Request received to last byte sent, completed requests."),
            self.sum_histogram(|w| &w.responses.duration),
        )?;
        sink.metric(
            About::in_seconds(
                "first_byte",
                "Request received to the upstream's first byte, admitted requests.",
            ),
            self.sum_histogram(|w| &w.responses.first_byte),
        )?;
        sink.metric(
            About::in_seconds("refusal_duration", "Request received to refusal made, shed requests."),
            self.sum_histogram(|w| &w.responses.refusal_duration),
        )?;
        sink.metric(
            About::new("responses_measured", "Responses measured for the detector."),
            Values::Counter(self.sum(|w| w.measurement.measured.value())),
        )?;
        sink.metric(
            About::labelled::<Unmeasured>(
                "responses_unmeasured",
                "Responses that say nothing about quality, by why.",
            ),
            self.sum_set(|w| &w.measurement.unmeasured),
        )
    }

    pub(super) fn visit_connections(&self, sink: &mut dyn Sink) -> fmt::Result {
        sink.metric(
            About::new("connections_opened", "Connections from clients that were served."),
            Values::Counter(self.sum(|w| w.connections.opened.value())),
        )?;
        sink.metric(
            About::new("connections_closed", "Connections from clients that were served and are closed."),
            Values::Counter(self.sum(|w| w.connections.closed.value())),
        )?;
        sink.metric(
            About::new("connections_open", "Connections from clients that are open."),
            Values::Gauge(Some(self.connections_open() as f64)),
        )?;
        sink.metric(
            About::labelled::<Bound>(
                "connections_refused",
                "Connections beyond a bound: only refused to, or closed.",
            ),
            self.sum_set(|w| &w.connections.refused),
        )?;
        sink.metric(
            About::labelled::<ConnectionFailure>(
                "connections_failed",
                "Connections from clients that failed.",
            ),
            self.sum_set(|w| &w.connections.failed),
        )?;
        sink.metric(
            About::new("tunnels_opened", "Upgraded connections (WebSocket) begun."),
            Values::Counter(self.sum(|w| w.connections.tunnels_opened.value())),
        )?;
        sink.metric(
            About::new("tunnels_open", "Upgraded connections that are open."),
            Values::Gauge(Some(self.tunnels_open() as f64)),
        )?;
        sink.metric(
            About::in_bytes("received", "Bytes read from clients."),
            Values::Counter(self.sum(|w| w.connections.received_bytes.value())),
        )?;
        sink.metric(
            About::in_bytes("sent", "Bytes written to clients."),
            Values::Counter(self.sum(|w| w.connections.sent_bytes.value())),
        )
    }

    pub(super) fn visit_upstreams(&self, sink: &mut dyn Sink) -> fmt::Result {
        sink.metric(
            About::labelled::<UpstreamFailure>(
                "upstream_failures",
                "Exchanges with an upstream that failed.",
            ),
            self.sum_set(|w| &w.upstream.failures),
        )?;
        sink.metric(
            About::new("upstream_retries", "Requests tried again because they were never sent."),
            Values::Counter(self.sum(|w| w.upstream.retries.value())),
        )?;
        sink.metric(
            About::labelled::<LoadReportOutcome>(
                "upstream_load_reports",
                "Load reports and request times that upstreams told (ORCA, Server-Timing), by use.",
            ),
            self.sum_set(|w| &w.upstream.load_reports),
        )?;
        sink.metric(
            About::new("upstream_reported_utilisations", "Utilisations that upstreams told."),
            Values::Counter(self.sum(|w| w.upstream.reported_utilisations.value())),
        )?;
        sink.metric(
            About::new("upstream_reported_utilisation_milli", "Those added up, in thousandths."),
            Values::Counter(self.sum(|w| w.upstream.reported_utilisation_milli.value())),
        )?;
        let healthy = self.control.slow().upstreams_healthy;
        let values = healthy.into_iter().map(|UpstreamHealth { service, place, is_in_use }| {
            (vec![service, place.to_string()], f64::from(u8::from(is_in_use)))
        });
        sink.metric(
            About::new("upstream_healthy", "1 when in use, 0 when left out; by place in upstream.urls."),
            Values::GaugeSeries(UPSTREAM, values.collect()),
        )
    }
}
