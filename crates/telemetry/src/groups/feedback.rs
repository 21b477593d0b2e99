//! Limits that the nodes in front are asked to keep, and limits that the upstreams ask for.

use std::sync::{Arc, Mutex, PoisonError};

use super::ControlMetrics;
use crate::group::{MetricGroup, Row, Scrape};
use crate::label::labels;

/// One service, as last decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedbackFigures {
    /// Its name.
    pub service: String,
    /// Nodes in front that were heard lately.
    pub senders: usize,
    /// Requests per second that they are asked not to exceed together, while they are.
    pub asked_rps: Option<f64>,
    /// Work that is queued and in service, seconds.
    pub level_s: f64,
    /// By upstream that was heard of: its place, what it asks for, requests per second, and for how long
    /// nothing newer came, seconds.
    pub upstreams: Vec<(usize, Option<f64>, Option<f64>)>,
}

/// All services.
#[derive(Debug, Default)]
pub(crate) struct FeedbackMetrics(Mutex<Vec<FeedbackFigures>>);

/// The group.
#[derive(Debug)]
pub(crate) struct FeedbackGroup(pub(crate) Arc<ControlMetrics>);

impl ControlMetrics {
    /// Publishes the decisions for a service.
    pub fn publish_feedback(&self, new: FeedbackFigures) {
        // Replaced one by one: a writer that panicked leaves some that are older.
        let mut known = self.feedback.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.iter_mut().find(|known| known.service == new.service) {
            Some(before) => *before = new,
            None => known.push(new),
        }
    }
}

impl MetricGroup for FeedbackGroup {
    fn title(&self) -> &'static str {
        "Feedback"
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.0.feedback.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for &(name, help, value) in GAUGES {
            let series = known.iter().filter_map(|known| Some((vec![known.service.clone()], value(known)?)));
            scrape.gauge_series(name, help, &["service"], series);
        }
        let labels = |known: &FeedbackFigures, place: usize| vec![known.service.clone(), place.to_string()];
        let asked = known.iter().flat_map(|known| {
            known
                .upstreams
                .iter()
                .filter_map(move |&(place, asked_rps, _)| Some((labels(known, place), asked_rps?)))
        });
        let help =
            "What an upstream asks this gateway not to exceed, while it does; by place in upstream.urls.";
        scrape.gauge_series("feedback_upstream_requests_per_second", help, &["service", "upstream"], asked);
        let ages = known.iter().flat_map(|known| {
            known.upstreams.iter().filter_map(move |&(place, _, age_s)| Some((labels(known, place), age_s?)))
        });
        let help = "How long ago an upstream last said something new of its overload.";
        scrape.gauge_series("feedback_upstream_age_seconds", help, &["service", "upstream"], ages);
        let help = "Fields of upstreams that speak of overload, without repetitions, and responses that lack one while a limit holds.";
        scrape.counter_set("feedback_fields", help, &[&*self.0], |control| &control.feedback_fields);
        let help = "Datagrams of upstreams that tell of overload, by what became of them.";
        scrape.counter_set("feedback_datagrams", help, &[&*self.0], |control| &control.feedback_datagrams);
        let help = "Datagrams sent to nodes in front that were asked for less and send nothing.";
        scrape.counter("feedback_datagrams_sent", help, self.0.feedback_datagrams_sent.value());
    }
}

const GAUGES: &[Row<FeedbackFigures, Option<f64>>] = &[
    ("feedback_senders", "Nodes in front that were heard lately.", |f| Some(f.senders as f64)),
    (
        "feedback_asked_requests_per_second",
        "What all nodes in front are asked not to exceed, while they are.",
        |f| f.asked_rps,
    ),
    ("feedback_level_seconds", "Work queued and in service, by which the ladder decides.", |f| {
        Some(f.level_s)
    }),
];

labels! {
    /// Outcome of a field of an upstream.
    FieldOutcome, "outcome" {
        /// It was believed.
        New => "new",
        /// It is older than one that was believed.
        Stale => "stale",
        /// It has no signature that is known here, or a wrong one.
        Forged => "forged",
        /// It is no message, or makes no sense.
        Malformed => "malformed",
        /// A response came without the field while a limit holds.
        Missing => "missing",
    }
}
