//! Exchanges with upstreams, and which upstreams are in use.

use std::sync::{Mutex, PoisonError};

use flashweir_core::Shortage;

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
    /// Requests sent once more after a connection that had been used ended under them.
    pub repeats: Counter,
    /// Requests that would have been, but for a bound.
    pub repeats_denied: CounterSet<RepeatDenied>,
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
            &[
                ("upstream_retries", "Requests tried again because they were never sent.", |u| &u.retries),
                (
                    "upstream_repeats",
                    "Requests sent once more, because a connection that had been used ended under them.",
                    |u| &u.repeats,
                ),
            ],
        );
        let help = "Requests not sent once more, and failed, because of a bound.";
        scrape.counter_set("upstream_repeats_denied", help, copies, |u| &u.repeats_denied);
        let help = "Load reports and request times reported by upstreams (ORCA, Server-Timing), by use.";
        scrape.counter_set("upstream_load_reports", help, copies, |u| &u.load_reports);
        scrape.counters(copies, REPORTED);
    }
}

const REPORTED: &[CounterRow<UpstreamMetrics>] = &[
    ("upstream_reported_utilisations", "Utilisations reported by upstreams.", |u| &u.reported_utilisations),
    ("upstream_reported_utilisation_milli", "Those added up, in thousandths.", |u| {
        &u.reported_utilisation_milli
    }),
];

/// State of one upstream: in use or not.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamHealth {
    /// The service it is of.
    pub service: String,
    /// Its place in the service's `upstream.urls`.
    pub place: usize,
    /// It gets requests; false while it is left out.
    pub is_in_use: bool,
    /// Share of the load that it should get beside the others; 1 for an ordinary server.
    pub share_ratio: f64,
}

/// Counts of upstreams of one service left out, and returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamChanges {
    /// The service.
    pub service: String,
    /// Cause and count.
    pub ejected: Vec<(&'static str, u64)>,
    /// Returns.
    pub returned: u64,
}

/// The state of upstreams that was published last.
#[derive(Debug, Default)]
pub(crate) struct UpstreamsInUse {
    known: Mutex<(Vec<UpstreamHealth>, Vec<UpstreamChanges>)>,
    probes: CounterSet<ProbeResult>,
    agents: CounterSet<AgentAnswer>,
    machines: Mutex<Vec<(String, Shortage)>>,
}

impl ControlMetrics {
    /// Publishes the upstreams in use, and the counts of changes.
    pub fn publish_upstreams(&self, health: Vec<UpstreamHealth>, changes: Vec<UpstreamChanges>) {
        // Replaced whole, so a writer that panicked leaves nothing half-written.
        *self.upstreams_in_use.known.lock().unwrap_or_else(PoisonError::into_inner) = (health, changes);
    }

    /// Publishes the shortage of each service's machines, by the agents' reports.
    pub fn publish_machines(&self, machines: Vec<(String, Shortage)>) {
        *self.upstreams_in_use.machines.lock().unwrap_or_else(PoisonError::into_inner) = machines;
    }

    /// Counts an agent's answer.
    pub fn count_agent(&self, answer: AgentAnswer) {
        self.upstreams_in_use.agents.increment(answer);
    }

    /// Counts a probe of an upstream.
    pub fn count_probe(&self, result: ProbeResult) {
        self.upstreams_in_use.probes.increment(result);
    }
}

impl MetricGroup for UpstreamsInUse {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn export(&self, scrape: &mut Scrape) {
        let (health, changes) = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of_each = |value: fn(&UpstreamHealth) -> f64| {
            let series =
                health.iter().map(move |it| (vec![it.service.clone(), it.place.to_string()], value(it)));
            series.collect::<Vec<_>>().into_iter()
        };
        let labels = &["service", "upstream"];
        let help = "1 when in use, 0 when left out; by place in upstream.urls.";
        scrape.gauge_series("upstream_healthy", help, labels, of_each(|it| flag(it.is_in_use)));
        let help = "Share of the load beside the others: below 1 while a server starts slowly, or by what was learned.";
        scrape.gauge_series("upstream_share_ratio", help, labels, of_each(|it| it.share_ratio));
        let ejected = changes.iter().flat_map(|it| {
            it.ejected
                .iter()
                .map(|&(cause, count)| (vec![it.service.clone(), cause.to_owned()], count as f64))
        });
        let help = "How often upstreams were left out, by cause.";
        scrape.counter_series("upstream_ejections", help, &["service", "cause"], ejected);
        let returned = changes.iter().map(|it| (vec![it.service.clone()], it.returned as f64));
        scrape.counter_series(
            "upstream_returns",
            "How often upstreams were taken back.",
            &["service"],
            returned,
        );
        let help = "Probes of upstreams, by how they ended.";
        scrape.counter_set("upstream_probes", help, &[self], |it| &it.probes);
        let machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let words = machines.iter().flat_map(|(service, short_of)| {
            let series =
                |word: Shortage| (vec![service.clone(), word.as_str().to_owned()], flag(word == *short_of));
            Shortage::ALL.map(series)
        });
        let help = "1 for what the machines of a service are short of, as their agents say.";
        scrape.gauge_series("machine_short_of", help, &["service", "resource"], words);
        let help = "Questions to agents beside the upstreams, by what came of them.";
        scrape.counter_set("upstream_agent_answers", help, &[self], |it| &it.agents);
    }
}

labels! {
    /// Kind of a failed exchange with an upstream.
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
    /// Bound for which a request was not sent once more.
    RepeatDenied, "bound" {
        /// Repeats had reached 20, and a fifth of the upstream's requests, in some ten seconds.
        Budget => "budget",
    }
    /// Result of a probe of an upstream.
    ProbeResult, "result" {
        /// It is there: connected to, or answered as expected.
        Passed => "passed",
        /// It cannot be connected to.
        NoConnection => "no_connection",
        /// A wrong answer, or none in time.
        BadAnswer => "bad_answer",
        /// As many were under way as there may be; those of this round wait for the next.
        Postponed => "postponed",
    }
    /// Outcome of a question to an agent.
    AgentAnswer, "answer" {
        /// A report.
        Used => "used",
        /// No connection, or no answer in time.
        NoAnswer => "no_answer",
        /// Something else than a report.
        Malformed => "malformed",
    }
    /// Use of an upstream's load report.
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
