//! State of each service's sentry.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_admission::sentry::{Common, Explanation, Plan, Rule};

use super::ControlMetrics;
use super::classes::ClassNews;
use crate::group::{MetricGroup, Row, Scrape, flag};

/// The plan in force of each service.
#[derive(Debug, Default)]
pub(crate) struct SentryMetrics(Mutex<Vec<ServiceFigures>>);

#[derive(Clone, Debug)]
struct ServiceFigures {
    service: String,
    limit: u32,
    long: u32,
    rows_merged: u64,
    long_limit: Option<u32>,
    price: f64,
    explanation: Explanation,
}

impl ControlMetrics {
    /// The sentry's plan now in force for a service, counts of its gates, and the counts of its classes since
    /// the last plan.
    pub fn publish_sentry<'a>(
        &self,
        service: &str,
        plan: &Plan,
        common: &Common,
        classes: impl Iterator<Item = ClassNews<'a>>,
    ) {
        classes.for_each(|news| self.publish_class(&news));
        let Plan { limit, price, explanation, .. } = *plan;
        let long_limit = plan.long.limit;
        let (long, rows_merged) = (common.long(), common.rows_merged());
        let service_name = service.to_owned();
        let new = ServiceFigures {
            service: service_name,
            limit,
            long,
            rows_merged,
            long_limit,
            price,
            explanation,
        };
        let mut known = self.sentries.lock();
        match known.iter_mut().find(|known| known.service == service) {
            Some(before) => *before = new,
            None => known.push(new),
        }
    }

    /// Leaves out the sentries of services that are not there any more.
    pub fn keep_sentries(&self, is_there: impl Fn(&str) -> bool) {
        self.sentries.lock().retain(|known| is_there(&known.service));
    }
}

impl SentryMetrics {
    fn lock(&self) -> MutexGuard<'_, Vec<ServiceFigures>> {
        // Replaced one by one: a writer that panicked leaves some that are older.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetricGroup for SentryMetrics {
    fn title(&self) -> &'static str {
        "Sentry"
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.lock().clone();
        let rules = known.iter().flat_map(|known| {
            let labels = |rule: Rule| vec![known.service.clone(), rule.as_str().to_owned()];
            Rule::ALL.iter().map(move |&rule| (labels(rule), flag(rule == known.explanation.rule)))
        });
        let help = "Which rule made the limit what it is: 1 for that one.";
        scrape.gauge_series("sentry_rule", help, &["service", "rule"], rules);
        let merged = known.iter().map(|known| (vec![known.service.clone()], known.rows_merged as f64));
        let help = "Times that requests of all URL classes counted as one in the evidence of calm, because a bound was met.";
        scrape.counter_series("sentry_evidence_merged", help, &["service"], merged);
        for &(name, help, value) in GAUGES {
            let series = known.iter().filter_map(|known| Some((vec![known.service.clone()], value(known)?)));
            scrape.gauge_series(name, help, &["service"], series);
        }
    }
}

const GAUGES: &[Row<ServiceFigures, Option<f64>>] = &[
    ("sentry_limit", "Requests at the origin at most, as learned.", |s| Some(s.limit.into())),
    (
        "sentry_long_in_flight",
        "Requests at the origin that hold no place in the limit: long ones, and prompt ones while another URL is late.",
        |s| Some(s.long.into()),
    ),
    (
        "sentry_long_limit",
        "Requests that hold no place at most; absent while the origin is short of nothing.",
        |s| s.long_limit.map(f64::from),
    ),
    ("sentry_knee", "Requests at the origin beyond which more do not serve more.", |s| s.explanation.knee),
    ("sentry_stretch_ratio", "How many times longer requests take than alone.", |s| s.explanation.stretch),
    ("sentry_capacity_requests_per_second", "What can be completed, as far as seen.", |s| {
        Some(s.explanation.capacity_rps)
    }),
    ("sentry_price", "What a second of a server earns with the least that is let in.", |s| Some(s.price)),
    ("sentry_quantile_over_mean_ratio", "95th percentile over mean of responses.", |s| {
        Some(s.explanation.quantile_over_mean)
    }),
    ("sentry_response_p95_seconds", "95th percentile of the time at the origin.", |s| {
        s.explanation.response_p95_s
    }),
    ("sentry_target_seconds", "Within what time answers are to come.", |s| {
        Some(s.explanation.target.as_secs_f64())
    }),
    ("sentry_target_infeasible", "1 when the service alone is slower than its target.", |s| {
        Some(flag(s.explanation.target_infeasible))
    }),
    (
        "sentry_guarantees_infeasible",
        "1 when in the last ten seconds guaranteed rates had to be lowered, or there was no room for what is within one.",
        |s| Some(flag(s.explanation.guarantees_infeasible)),
    ),
];
