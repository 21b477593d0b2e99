//! For how long a request's caller can use an answer: read from the request's head, and passed on less what
//! was spent here.
//!
//! `Flashweir-Deadline` comes first; where there is none, `grpc-timeout`; where there is neither, the class's
//! target, if the configuration says so. A deadline can only bring its own request's refusal forward, so any
//! client may set one.

use flashweir_classify::Classified;
use flashweir_config::Config;
use flashweir_core::{Duration, Instant};
use flashweir_feedback::caller::{
    DEADLINE, GRPC_TIMEOUT, deadline_text, grpc_timeout_text, parse_deadline, parse_grpc_timeout,
};
use flashweir_http1::head::FieldsView;
use flashweir_telemetry::{CallerDeadline, WorkerMetrics};
use http::{HeaderMap, HeaderName, HeaderValue};

const FIELD: HeaderName = HeaderName::from_static(DEADLINE);
const GRPC_FIELD: HeaderName = HeaderName::from_static(GRPC_TIMEOUT);

/// The deadline that the head of a request says, which arrived at `arrived`. To be read before fields of our
/// own are taken out. A value that makes no sense is counted and ignored, as are several fields of one name:
/// the request is served as one without a deadline.
pub(crate) fn of_head<'a>(
    metrics: &WorkerMetrics,
    fields: impl Into<FieldsView<'a>>,
    arrived: Instant,
) -> Option<Instant> {
    let fields = fields.into();
    let deadlines = &metrics.requests.deadlines;
    let read = |name: &HeaderName, source, parse: fn(&[u8]) -> Option<Duration>| {
        let left = only(fields, name)?.and_then(parse);
        deadlines.increment(if left.is_some() { source } else { CallerDeadline::Malformed });
        left
    };
    let left = read(&FIELD, CallerDeadline::Field, |value| parse_deadline(value).ok())
        .or_else(|| read(&GRPC_FIELD, CallerDeadline::Grpc, parse_grpc_timeout))?;
    Some(arrived + left)
}

/// The deadline of a request whose head says none: its class's target, where the configuration says so.
pub(crate) fn of_class(
    metrics: &WorkerMetrics,
    config: &Config,
    classified: &Classified,
    arrived: Instant,
) -> Option<Instant> {
    if !config.feedback.is_enabled || !config.feedback.is_target_deadline {
        return None;
    }
    metrics.requests.deadlines.increment(CallerDeadline::Target);
    let service = &config.services[classified.service];
    let of_class = service.classes[usize::from(classified.class)].response_target;
    Some(arrived + of_class.unwrap_or(service.sentry.response_target))
}

/// Writes what is left into the fields of a request that is sent on now; false where nothing is left.
pub(crate) fn pass_on(fields: &mut HeaderMap, now: Instant, deadline: Instant) -> bool {
    let left = deadline.saturating_since(now);
    if left.as_millis() == 0 {
        return false;
    }
    // Digits, and a unit.
    let value = |text: String| HeaderValue::try_from(text).ok();
    if let Some(timeout) = fields.get(&GRPC_FIELD).and_then(|value| parse_grpc_timeout(value.as_bytes()))
        && let Some(text) = grpc_timeout_text(left.min(timeout)).and_then(value)
    {
        fields.insert(GRPC_FIELD, text);
    }
    if let Some(text) = value(deadline_text(left)) {
        fields.insert(FIELD, text);
    }
    true
}

/// None where there is no such field, and nothing in it where there are several.
fn only<'a>(fields: FieldsView<'a>, name: &'a HeaderName) -> Option<Option<&'a [u8]>> {
    let mut values = fields.all_named(name);
    let first = values.next()?;
    Some(values.next().is_none().then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in pairs {
            fields.append(*name, HeaderValue::from_static(value));
        }
        fields
    }

    #[test]
    fn what_is_left_travels_on() {
        let at = Instant::from_millis;
        let mut head = fields(&[("grpc-timeout", "2S")]);
        assert!(pass_on(&mut head, at(1_250), at(2_000)));
        assert_eq!(head, fields(&[("grpc-timeout", "750m"), ("flashweir-deadline", "750")]));
        // A class's target may be longer than what the caller set.
        let mut head = fields(&[("grpc-timeout", "100m")]);
        assert!(pass_on(&mut head, at(0), at(500)));
        assert_eq!(head["grpc-timeout"], "100m");
        assert!(!pass_on(&mut head, at(500), at(500)));
        let nearly = at(500) + Duration::from_micros(999);
        assert!(!pass_on(&mut head, at(500), nearly), "less than a millisecond is nothing");
    }

    #[test]
    fn several_fields_of_one_name_are_none() {
        let two = fields(&[("flashweir-deadline", "5"), ("flashweir-deadline", "9")]);
        assert_eq!(only((&two).into(), &FIELD), Some(None));
        assert_eq!(only((&two).into(), &GRPC_FIELD), None);
        let metrics = WorkerMetrics::default();
        let at = Instant::from_secs(3);
        let deadline = |pairs| of_head(&metrics, &fields(pairs), at).map(|until| until.saturating_since(at));
        assert_eq!(deadline(&[("flashweir-deadline", "5"), ("flashweir-deadline", "9")]), None);
        assert_eq!(
            deadline(&[("flashweir-deadline", "-5"), ("grpc-timeout", "2S")]),
            Some(Duration::from_secs(2))
        );
        assert_eq!(
            deadline(&[("flashweir-deadline", "70"), ("grpc-timeout", "2S")]),
            Some(Duration::from_millis(70))
        );
        assert_eq!(metrics.requests.deadlines.value(CallerDeadline::Malformed), 2);
    }
}
