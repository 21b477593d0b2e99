//! The origin's own report on a request and on its load. ORCA's fields are for load balancers, so they are
//! taken out, but for those beside `grpc-status`: there a client asks for them by gRPC itself.
//! `Server-Timing` is for browsers, so it is read and passed on as it is.
//!
//! - `Server-Timing` (W3C Server Timing): the duration of `cpu`, or else of `app`, is what the request took. Others are
//!   left alone on purpose: `total` counts what the request waited inside the origin, which the sentry knows better.
//! - ORCA (the load reports of xDS): `endpoint-load-metrics` as `TEXT`, `JSON` or `BIN`, and the older binary fields. Of
//!   it the utilisation is read, the application's own before the processor's. It weighs the servers of a pool, within a
//!   factor of two; the sentry decides nothing by it, for it measures what the origin does, so an origin that lies moves no limit.
//!
//! Read strictly and within bounds: what is malformed, too long, negative, infinite, no number or absurdly
//! large is ignored and counted. Nothing in a field can do more than be ignored.

mod orca;
mod server_timing;

use flashweir_core::limits::LOAD_REPORT_BYTES;
use flashweir_http::head::AnswerHead;
use flashweir_http1::head::KnownField;
use flashweir_telemetry::{LoadReportOutcome, UpstreamMetrics};
use http::{HeaderMap, HeaderName};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// In the trailers of each gRPC response, or in its head where it has nothing else.
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const ORCA: HeaderName = HeaderName::from_static("endpoint-load-metrics");
const ORCA_BINARY: [HeaderName; 2] = [
    HeaderName::from_static("endpoint-load-metrics-bin"),
    HeaderName::from_static("x-endpoint-load-metrics-bin"),
];

/// Reason for which a report was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Useless {
    /// It says nothing that is asked for.
    Other,
    Malformed,
    OutOfRange,
}

/// Values that an origin reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadReport {
    /// Service time of the request, microseconds.
    pub(crate) took_us: Option<u32>,
    /// Utilisation of the origin, thousandths, at most 100,000.
    pub(crate) utilisation_milli: Option<u32>,
}

/// Reads the reports in a response's head, counts them, and gives what they say.
pub(crate) fn take_of(head: &mut AnswerHead, metrics: &UpstreamMetrics) -> LoadReport {
    if let AnswerHead::Spans(_) = head {
        let mut fields = head.fields().iter();
        if !fields.any(|field| field.known == KnownField::Other && may_report(field.name)) {
            return LoadReport::default();
        }
    }
    take(&mut head.parts_mut().headers, metrics)
}

/// Returns whether a field of this name, in any case, may hold a report.
fn may_report(name: &[u8]) -> bool {
    let names = [&SERVER_TIMING, &ORCA, &ORCA_BINARY[0], &ORCA_BINARY[1]];
    names.iter().any(|report| name.eq_ignore_ascii_case(report.as_str().as_bytes()))
}

/// Reads the reports in the fields, counts them, and gives what they say.
pub(crate) fn take(fields: &mut HeaderMap, metrics: &UpstreamMetrics) -> LoadReport {
    // One pass over the names costs less than looking up four that are hardly ever there.
    let is_report = |name: &HeaderName| *name == SERVER_TIMING || *name == ORCA || ORCA_BINARY.contains(name);
    if !fields.keys().any(is_report) {
        return LoadReport::default();
    }
    let utilisation_milli = take_load(fields, metrics);
    LoadReport { took_us: read_timing(fields, metrics), utilisation_milli }
}

/// For fuzz targets: what [`take`] finds, as microseconds of work and thousandths of utilisation.
#[doc(hidden)]
pub fn take_load_report(fields: &mut HeaderMap, metrics: &UpstreamMetrics) -> (Option<u32>, Option<u32>) {
    let LoadReport { took_us, utilisation_milli } = take(fields, metrics);
    (took_us, utilisation_milli)
}

fn read_timing(fields: &HeaderMap, metrics: &UpstreamMetrics) -> Option<u32> {
    if !fields.contains_key(&SERVER_TIMING) {
        return None;
    }
    let report = within_bounds(fields, &SERVER_TIMING).and_then(|values| {
        server_timing::service_time_us(values.iter().filter_map(|value| value.to_str().ok()))
    });
    count(metrics, &report);
    report.ok()
}

/// The same for ORCA's fields alone: they may come behind the body, too. The utilisation, thousandths.
pub(crate) fn take_load(fields: &mut HeaderMap, metrics: &UpstreamMetrics) -> Option<u32> {
    let mut utilisation = None;
    let is_grpc = fields.contains_key(&GRPC_STATUS);
    for name in [&ORCA, &ORCA_BINARY[0], &ORCA_BINARY[1]] {
        if !fields.contains_key(name) {
            continue;
        }
        let is_binary = *name != ORCA;
        let report = within_bounds(fields, name).and_then(|values| {
            let mut values = values.iter();
            let (Some(value), None) = (values.next(), values.next()) else { return Err(Useless::Malformed) };
            let text = value.to_str().map_err(|_| Useless::Malformed)?;
            if is_binary { orca::binary(text) } else { orca::any(text) }
        });
        if !is_grpc {
            fields.remove(name);
        }
        count(metrics, &report);
        if let Ok(utilisation_milli) = report {
            metrics.reported_utilisation_milli.add(utilisation_milli.into());
            metrics.reported_utilisations.increment();
            utilisation = Some(utilisation_milli);
        }
    }
    utilisation
}

fn within_bounds<'a>(
    fields: &'a HeaderMap,
    name: &HeaderName,
) -> Result<http::header::GetAll<'a, http::HeaderValue>, Useless> {
    let values = fields.get_all(name);
    let bytes: usize = values.iter().map(http::HeaderValue::len).sum();
    if bytes > LOAD_REPORT_BYTES { Err(Useless::OutOfRange) } else { Ok(values) }
}

fn count<T>(metrics: &UpstreamMetrics, report: &Result<T, Useless>) {
    metrics.load_reports.increment(match report {
        Ok(_) => LoadReportOutcome::Used,
        Err(Useless::Other) => LoadReportOutcome::Other,
        Err(Useless::Malformed) => LoadReportOutcome::Malformed,
        Err(Useless::OutOfRange) => LoadReportOutcome::OutOfRange,
    });
}

/// A number that makes sense: not negative, and at most `most`.
fn number(text: &str, most: f64) -> Result<f64, Useless> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_plain {
        // `inf` and `NaN`, which Rust reads, are no numbers here, and nothing that makes sense either.
        let is_number = text.parse::<f64>().is_ok();
        return Err(if is_number { Useless::OutOfRange } else { Useless::Malformed });
    }
    in_range(text.parse().map_err(|_| Useless::Malformed)?, most)
}

fn in_range(value: f64, most: f64) -> Result<f64, Useless> {
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(Useless::OutOfRange) }
}

#[cfg(test)]
#[path = "load_report/tests.rs"]
mod tests;
