//! The metrics of the sentry: by service, and by class.

use core::fmt;

use flashweir_admission::sentry::Rule;
use flashweir_core::Reason;

use super::{About, Catalogue, Sink, Values};
use crate::classes::{ClassMetrics, KnownClass, KnownService};

const SERVICE: &[&str] = &["service"];
const RULE: &[&str] = &["service", "rule"];
const CLASS: &[&str] = &["service", "class"];
const CLASS_AND_REASON: &[&str] = &["service", "class", "reason"];

impl Catalogue {
    pub(super) fn visit_classes(&self, sink: &mut dyn Sink) -> fmt::Result {
        let classes = self.control.sentries().known().classes;
        let counted: [(About, Count); 6] = [
            (About::new("class_offered", "Requests that arrived, by class."), |c| c.offered.value()),
            (About::new("class_admitted", "Requests let in, by class."), |c| c.admitted.value()),
            (About::new("class_held", "Requests that had to wait for room, by class."), |c| c.held.value()),
            (About::new("class_left", "Requests whose client left while they waited, by class."), |c| {
                c.left.value()
            }),
            (
                About::new(
                    "class_shadow_shed",
                    "Requests the sentry would have refused but for shadow mode, by class.",
                ),
                |c| c.shadow_shed.value(),
            ),
            (
                About::new("class_unmet", "Requests refused, or given up while waiting: demand not met."),
                |c| c.shed.total() + c.left.value(),
            ),
        ];
        for (about, count) in counted {
            let values = classes.iter().enumerate();
            let values = values.map(|(slot, class)| (class.labels(), self.sum_class(slot, count) as f64));
            sink.metric(about, Values::CounterSeries(CLASS, values.collect()))?;
        }
        let unmet = classes.iter().enumerate();
        let unmet = unmet
            .map(|(slot, class)| (class.labels(), self.sum_class(slot, |c| c.unmet_us.value()) as f64 / 1e6));
        sink.metric(
            About::new(
                "class_unmet_server_seconds",
                "What the demand not met would have taken at the origin, as estimated: for who adds servers.",
            ),
            Values::CounterSeries(CLASS, unmet.collect()),
        )?;
        sink.metric(
            About::new("class_shed", "Requests refused, by class and by the limit that was met."),
            Values::CounterSeries(CLASS_AND_REASON, self.shed_by_class(&classes)),
        )?;
        let known: [(About, Figure<KnownClass>); 3] = [
            (
                About::new("class_completed", "Answers that came from the origin to their end, by class."),
                |c| Some(c.completed as f64),
            ),
            (
                About::new(
                    "class_good",
                    "Answers that came to their end within the class's target (goodput), by class.",
                ),
                |c| Some(c.good as f64),
            ),
            (About::new("class_revenue", "What the good ones were worth, by class."), |c| Some(c.revenue)),
        ];
        for (about, value) in known {
            sink.metric(about, Values::CounterSeries(CLASS, figures(&classes, value)))?;
        }
        self.visit_class_gauges(sink, &classes)
    }

    fn visit_class_gauges(&self, sink: &mut dyn Sink, classes: &[KnownClass]) -> fmt::Result {
        let gauges: [(About, Figure<KnownClass>); 5] = [
            (About::new("class_in_flight", "Requests at the origin, by class."), |c| {
                Some(c.in_flight.into())
            }),
            (About::new("class_waiting", "Requests that wait for room, by class."), |c| Some(c.held.into())),
            (About::in_seconds("class_waiting_oldest", "How long the oldest has waited, by class."), |c| {
                Some(c.oldest_held_s)
            }),
            (
                About::new(
                    "class_limit",
                    "Requests at the origin, of all classes, below which one of this class is let in.",
                ),
                |c| c.limit.map(f64::from),
            ),
            (
                About::in_seconds(
                    "class_service_time",
                    "What a request takes at the origin when it is alone, as estimated, by class.",
                ),
                |c| c.service_time_s,
            ),
        ];
        for (about, value) in gauges {
            sink.metric(about, Values::GaugeSeries(CLASS, figures(classes, value)))?;
        }
        Ok(())
    }

    pub(super) fn visit_sentries(&self, sink: &mut dyn Sink) -> fmt::Result {
        let services = self.control.sentries().known().services;
        let rules = services.iter().flat_map(|known| {
            let is = known.explanation.rule;
            Rule::ALL
                .iter()
                .map(move |&rule| (vec![known.service.clone(), rule.as_str().to_owned()], flag(rule == is)))
        });
        sink.metric(
            About::new("sentry_rule", "Which rule made the limit what it is: 1 for that one."),
            Values::GaugeSeries(RULE, rules.collect()),
        )?;
        let gauges: [(About, Figure<KnownService>); 10] = [
            (About::new("sentry_limit", "Requests at the origin at most, as learned."), |s| {
                Some(s.limit.into())
            }),
            (About::new("sentry_knee", "Requests at the origin beyond which more do not serve more."), |s| {
                s.explanation.knee
            }),
            (About::as_ratio("sentry_stretch", "How many times longer requests take than alone."), |s| {
                s.explanation.stretch
            }),
            (
                About::new("sentry_capacity_requests_per_second", "What can be completed, as far as seen."),
                |s| Some(s.explanation.capacity_rps),
            ),
            (
                About::new("sentry_price", "What a second of a server earns with the least that is let in."),
                |s| Some(s.price),
            ),
            (About::as_ratio("sentry_quantile_over_mean", "95th percentile over mean of responses."), |s| {
                Some(s.explanation.quantile_over_mean)
            }),
            (About::in_seconds("sentry_response_p95", "95th percentile of the time at the origin."), |s| {
                s.explanation.response_p95_s
            }),
            (About::in_seconds("sentry_target", "Within what time answers are to come."), |s| {
                Some(s.explanation.target.as_secs_f64())
            }),
            (
                About::new("sentry_target_infeasible", "1 when the service alone is slower than its target."),
                |s| Some(flag(s.explanation.target_infeasible)),
            ),
            (
                About::new("sentry_guarantees_infeasible", "1 when all guaranteed rates had to be lowered."),
                |s| Some(flag(s.explanation.guarantees_infeasible)),
            ),
        ];
        for (about, value) in gauges {
            let values =
                services.iter().filter_map(|known| Some((vec![known.service.clone()], value(known)?)));
            sink.metric(about, Values::GaugeSeries(SERVICE, values.collect()))?;
        }
        Ok(())
    }

    fn sum_class(&self, slot: usize, count: Count) -> u64 {
        self.sum(|worker| worker.classes.by_index(slot).map_or(0, count))
    }

    fn shed_by_class(&self, classes: &[KnownClass]) -> Vec<(Vec<String>, f64)> {
        let of = |(slot, class): (usize, &KnownClass)| {
            let labels = class.labels();
            Reason::ALL.map(|reason| {
                let mut labels = labels.clone();
                labels.push(reason.as_str().to_owned());
                let count =
                    self.sum(|worker| worker.classes.by_index(slot).map_or(0, |c| c.shed.value(reason)));
                (labels, count as f64)
            })
        };
        classes.iter().enumerate().flat_map(of).collect()
    }
}

impl KnownClass {
    fn labels(&self) -> Vec<String> {
        vec![self.service.clone(), self.class.clone()]
    }
}

/// 1 for what is so.
fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

type Count = fn(&ClassMetrics) -> u64;
type Figure<T> = fn(&T) -> Option<f64>;

fn figures(classes: &[KnownClass], value: Figure<KnownClass>) -> Vec<(Vec<String>, f64)> {
    classes.iter().filter_map(|class| Some((class.labels(), value(class)?))).collect()
}
