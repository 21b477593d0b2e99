//! Goal: what is meant is read, everything else is ignored and counted, and nothing of it panics.

use super::*;
use http::HeaderValue;
use proptest::prelude::*;

fn taken(name: &'static str, values: &[&str]) -> (Option<u32>, UpstreamMetrics) {
    let metrics = UpstreamMetrics::default();
    let mut fields = HeaderMap::new();
    for value in values {
        fields.append(name, HeaderValue::from_str(value).expect("a field value"));
    }
    let report = take(&mut fields, &metrics);
    let passed_on = if name == "server-timing" { values.len() } else { 0 };
    assert_eq!(fields.len(), passed_on, "only what is for the client reaches it");
    (report.took_us, metrics)
}

fn timing(values: &[&str]) -> Option<u32> {
    taken("server-timing", values).0
}

fn outcome(name: &'static str, value: &str, outcome: LoadReportOutcome) {
    let (_, metrics) = taken(name, &[value]);
    assert_eq!(metrics.load_reports.value(outcome), 1, "{name}: {value}");
    assert_eq!(metrics.load_reports.total(), 1, "{name}: {value}");
}

fn utilisation_milli(name: &'static str, value: &str) -> Option<u64> {
    let metrics = UpstreamMetrics::default();
    let mut fields = HeaderMap::new();
    fields.append(name, HeaderValue::from_str(value).expect("a field value"));
    let milli = take(&mut fields, &metrics).utilisation_milli.map(u64::from);
    assert_eq!(milli.unwrap_or(0), metrics.reported_utilisation_milli.value(), "{name}: {value}");
    milli
}

#[test]
fn the_time_a_request_took_is_found_among_other_metrics() {
    assert_eq!(timing(&["cpu;dur=12.5"]), Some(12_500));
    assert_eq!(timing(&["cache;desc=\"Cache, \\\"hit\\\"; dur=9\", app;dur=7, db;dur=3"]), Some(7_000));
    assert_eq!(
        timing(&["miss, app ; desc=x ; DUR = \"4\""]),
        Some(4_000),
        "names in any case, quoted numbers"
    );
    assert_eq!(timing(&["app;dur=7", "cpu;dur=2"]), Some(2_000), "of all lines, what is best");
    assert_eq!(timing(&["cpu;dur=1;dur=2, cpu;dur=3"]), Some(1_000), "the first counts");
    assert_eq!(timing(&["total;dur=80", "db;dur=1"]), None, "waiting inside the origin is not work");
    assert_eq!(timing(&["cpu"]), None);
}

#[test]
fn a_time_that_makes_no_sense_is_ignored_and_counted() {
    for value in
        ["cpu;dur=-1", "cpu;dur=NaN", "cpu;dur=inf", "cpu;dur=1e300", "cpu;dur=3600001", "cpu;dur=1e999"]
    {
        outcome("server-timing", value, LoadReportOutcome::OutOfRange);
    }
    for value in ["cpu;dur=", "cpu;dur=1x", "cpu;dur=\"1", "cpu dur=1", ";dur=1", "cpu;dur=1 2"] {
        outcome("server-timing", value, LoadReportOutcome::Malformed);
    }
    outcome("server-timing", "db;dur=1", LoadReportOutcome::Other);
    outcome("server-timing", &"x,".repeat(LOAD_REPORT_BYTES), LoadReportOutcome::OutOfRange);
    outcome("server-timing", &"x,".repeat(200), LoadReportOutcome::OutOfRange);
}

#[test]
fn utilisation_is_read_in_every_form() {
    let orca = "endpoint-load-metrics";
    assert_eq!(utilisation_milli(orca, "TEXT cpu_utilization=0.3,named_metrics.q=2"), Some(300));
    assert_eq!(utilisation_milli(orca, "TEXT cpu_utilization:0.3, application_utilization: 0.5"), Some(500));
    assert_eq!(utilisation_milli(orca, "JSON {\"cpu_utilization\": 1.25, \"eps\": 3}"), Some(1_250));
    assert_eq!(
        utilisation_milli(orca, "JSON {\"applicationUtilization\":0.0,\"cpuUtilization\":0.5}"),
        Some(500)
    );
    // Field 1, a double of 0.5; then field 8, a map with one entry, that is stepped over.
    let report = "CQAAAAAAAOA/QgwKAXERAAAAAAAAAEA=";
    assert_eq!(utilisation_milli(orca, &format!("BIN {report}")), Some(500));
    assert_eq!(utilisation_milli("endpoint-load-metrics-bin", report), Some(500));
    assert_eq!(utilisation_milli("x-endpoint-load-metrics-bin", report.trim_end_matches('=')), Some(500));
}

#[test]
fn the_report_of_a_grpc_response_is_read_and_reaches_its_client() {
    let metrics = UpstreamMetrics::default();
    let name = "endpoint-load-metrics-bin";
    let fields = [(name, "CQAAAAAAAOA/QgwKAXERAAAAAAAAAEA="), ("grpc-status", "0")];
    let mut trailers: HeaderMap = fields
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .into_iter()
        .collect();
    assert_eq!(take_load(&mut trailers, &metrics), Some(500));
    assert!(trailers.contains_key(name));
    trailers.remove("grpc-status");
    assert_eq!(take_load(&mut trailers, &metrics), Some(500));
    assert!(!trailers.contains_key(name));
}

#[test]
fn a_load_that_makes_no_sense_is_ignored_and_counted() {
    let orca = "endpoint-load-metrics";
    for value in ["TEXT cpu_utilization=-0.1", "TEXT cpu_utilization=NaN", "TEXT cpu_utilization=1e9"] {
        outcome(orca, value, LoadReportOutcome::OutOfRange);
    }
    // Field 1 of minus one, infinite, and no number at all.
    for value in ["BIN CQAAAAAAAPC/", "BIN CQAAAAAAAPB/", "BIN CQAAAAAAAPh/"] {
        outcome(orca, value, LoadReportOutcome::OutOfRange);
    }
    for value in
        ["", "TEXT", "TEXT x", "XML <a/>", "JSON {", "JSON {\"cpu_utilization\": NaN}", "BIN !", "BIN CQ=="]
    {
        outcome(orca, value, LoadReportOutcome::Malformed);
    }
    outcome(orca, "TEXT cpu_utilization=0.1,cpu_utilization=0.2", LoadReportOutcome::Malformed);
    outcome(orca, "TEXT named_metrics.q=1", LoadReportOutcome::Other);
    outcome(orca, "JSON {}", LoadReportOutcome::Other);
}

proptest! {
    #[test]
    fn nothing_in_a_field_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), form in 0usize..8) {
        let forms: [&[u8]; 8] =
            [b"", b"TEXT ", b"JSON ", b"BIN ", b"cpu;dur=", b"cpu;", b"TEXT cpu_utilization=", b"JSON {\"cpu_utilization\":"];
        let value: Vec<u8> = forms[form].iter().chain(&bytes).copied().collect();
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let metrics = UpstreamMetrics::default();
        let mut fields = HeaderMap::new();
        for name in [&SERVER_TIMING, &ORCA, &ORCA_BINARY[0], &ORCA_BINARY[1]] {
            fields.append(name, value.clone());
        }
        if let Some(took_us) = take(&mut fields, &metrics).took_us {
            prop_assert!(took_us <= 3_600_000_000);
        }
        prop_assert!(fields.keys().all(|name| name == SERVER_TIMING), "only what is for the client is left");
        prop_assert_eq!(metrics.load_reports.total(), 4, "each counted once");
        prop_assert!(metrics.reported_utilisation_milli.value() <= 3 * 100_000);
    }

    #[test]
    fn any_base64_is_walked_to_its_end(bytes in "[A-Za-z0-9+/]{0,200}") {
        let _ = orca::binary(&bytes);
    }
}
