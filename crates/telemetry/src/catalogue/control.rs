//! The metrics of the plan in force and of the process.

use core::fmt;

use flashweir_admission::flash_crowd::{Cause, Explanation, Mode, Rule};

use super::{About, Catalogue, Sink, Values, set_values};
use crate::histogram::HistogramValues;
use crate::label::{Label as _, Outcome};
use crate::log::Happening;

impl Catalogue {
    pub(super) fn visit_plan(&self, sink: &mut dyn Sink) -> fmt::Result {
        let plan = self.control.slow().plan;
        let why = plan.map(|plan| plan.explanation);
        sink.metric(
            About::new("plan_epoch", "Number of the decision in force."),
            Values::Gauge(plan.map(|plan| plan.epoch as f64)),
        )?;
        let modes =
            Mode::ALL.iter().map(|&mode| state(mode.as_str(), why.is_some_and(|why| why.mode == mode)));
        sink.metric(
            About {
                label: Some("mode"),
                ..About::new("plan_mode", "The detector's state: 1 for the present one.")
            },
            Values::Gauges(modes.collect()),
        )?;
        let causes =
            Cause::ALL.iter().map(|&cause| state(cause.as_str(), why.is_some_and(|why| why.cause == cause)));
        sink.metric(
            About {
                label: Some("cause"),
                ..About::new("plan_cause", "Why load is as it is: 1 for the present verdict.")
            },
            Values::Gauges(causes.collect()),
        )?;
        sink.metric(
            About::labelled::<Rule>("plans", "Decisions by the rule that made them."),
            set_values(&self.control.plans),
        )?;
        sink.metric(
            About::new("plan_hot_spots_limited", "Hosts that have a ceiling of their own."),
            Values::Gauge(plan.map(|plan| plan.hot_spots_limited as f64)),
        )?;
        sink.metric(
            About::new("plan_responses", "Responses the decision rests on."),
            Values::Gauge(why.map(|why| why.responses as f64)),
        )?;
        sink.metric(
            About::new("samples_judged", "Workers' samples the planner took."),
            Values::Counter(self.control.samples_judged.value()),
        )?;
        let mut tick = HistogramValues::default();
        self.control.planner_tick.add_to(&mut tick);
        sink.metric(About::in_seconds("planner_tick", "Time of one planner tick."), Values::Histogram(tick))
    }

    pub(super) fn visit_plan_rates(&self, sink: &mut dyn Sink) -> fmt::Result {
        let why = self.control.slow().plan.map(|plan| plan.explanation);
        let gauges: [(About, Figure); 12] = [
            (
                About::new("plan_ceiling_requests_per_second", "Ceiling on admission; absent when open."),
                |why| why.ceiling_rps,
            ),
            (
                About::as_ratio(
                    "plan_quality",
                    "Response quality over its baseline: 1 as usual, less is worse.",
                ),
                |why| why.quality,
            ),
            (About::as_ratio("plan_margin", "Tolerated degradation in force."), |why| Some(why.margin)),
            (
                About::new(
                    "plan_fast_rate_bytes_per_second",
                    "Mean rate of the fastest tenth of large responses.",
                ),
                |why| why.fast_rate_bytes_per_s,
            ),
            (About::new("plan_fast_rate_reference_bytes_per_second", "Its baseline."), |why| {
                why.fast_rate_reference
            }),
            (
                About::as_ratio(
                    "plan_fast_score",
                    "Mean latency of the fastest tenth over the usual median.",
                ),
                |why| why.fast_score,
            ),
            (About::as_ratio("plan_fast_score_reference", "Its baseline."), |why| why.fast_score_reference),
            (
                About::new("plan_offered_requests_per_second", "Requests that arrived, as last judged."),
                |why| Some(why.offered_rps),
            ),
            (
                About::new("plan_unique_offered_requests_per_second", "People's attempts, as last judged."),
                |why| Some(why.unique_offered_rps),
            ),
            (About::new("plan_unique_offered_reference_requests_per_second", "Its baseline."), |why| {
                why.unique_offered_reference_rps
            }),
            (About::new("plan_admitted_requests_per_second", "Requests let in, as last judged."), |why| {
                Some(why.admitted_rps)
            }),
            (
                About::new("plan_completed_requests_per_second", "Responses finished, as last judged."),
                |why| Some(why.completed_rps),
            ),
        ];
        for (about, value) in gauges {
            sink.metric(about, Values::Gauge(why.as_ref().and_then(value)))?;
        }
        Ok(())
    }

    pub(super) fn visit_process(&self, sink: &mut dyn Sink) -> fmt::Result {
        let control = &self.control;
        sink.metric(
            About::labelled::<Outcome>(
                "config_reloads",
                "Reloads of the configuration; failed ones left the old in force.",
            ),
            set_values(&control.config_reloads),
        )?;
        sink.metric(
            About::labelled::<Outcome>(
                "certificate_reloads",
                "Reloads of the certificate; failed ones left the old in force.",
            ),
            set_values(&control.certificate_reloads),
        )?;
        sink.metric(
            About::labelled::<Outcome>("state_writes", "Writes of the state file."),
            set_values(&control.state_writes),
        )?;
        let warnings =
            Happening::ALL.iter().map(|&kind| (kind.as_str(), self.warnings.value(kind))).collect();
        sink.metric(
            About::labelled::<Happening>(
                "warnings",
                "Happenings worth a warning; most are counted, few are logged.",
            ),
            Values::Counters(warnings),
        )?;
        sink.metric(
            About::new("shadow", "1 when flash-crowd refusals are only recorded."),
            Values::Gauge(Some(f64::from(u8::from(control.shadow())))),
        )?;
        sink.metric(
            About::new("draining", "1 when no new work is taken."),
            Values::Gauge(Some(f64::from(u8::from(control.draining())))),
        )?;
        sink.metric(
            About::new("workers", "Worker threads."),
            Values::Gauge(Some(self.workers.len() as f64)),
        )?;
        sink.metric(
            About { label: Some("version"), ..About::new("build", "The version that runs.") },
            Values::Info(self.version.to_owned()),
        )
    }
}

/// Picks one number of an explanation; `None` where there is none.
type Figure = fn(&Explanation) -> Option<f64>;

/// One value of a state set: 1 for the present state, 0 for the others.
fn state(name: &str, present: bool) -> (String, f64) {
    (name.to_owned(), f64::from(u8::from(present)))
}
