//! Metrics as Prometheus text, for programs that do not read OpenMetrics.
//!
//! The encoder writes OpenMetrics alone. In the older format, a family has the name of its samples, an info
//! metric is a gauge, quotes in a help text are not escaped, and there are neither units nor a last line.

/// The `Content-Type` of [`Telemetry::prometheus_text`](crate::Telemetry::prometheus_text).
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts a whole OpenMetrics text, in which each family has its HELP line before its TYPE line.
pub(crate) fn from_open_metrics(text: &str) -> String {
    let mut converted = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next().unwrap_or_default()) {
            (Some("#"), Some("HELP"), Some(_), text) => help = text,
            (Some("#"), Some("TYPE"), Some(family), kind) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "stateset" => ("", "gauge"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                let help = help.replace("\\\"", "\"");
                converted
                    .push_str(&format!("# HELP {family}{suffix} {help}\n# TYPE {family}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                converted.push_str(line);
                converted.push('\n');
            }
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_named_as_their_samples_and_what_is_new_in_open_metrics_is_left_out() {
        let open = "# HELP a_requests Requests \\\"in\\\" all.\n# TYPE a_requests counter\na_requests_total{kind=\"x\"} 3\n\
            # HELP c_seconds C.\n# TYPE c_seconds histogram\n# UNIT c_seconds seconds\nc_seconds_bucket{le=\"+Inf\"} 2\n\
            # HELP build Version.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n# EOF\n";
        let plain = "# HELP a_requests_total Requests \"in\" all.\n# TYPE a_requests_total counter\n\
            a_requests_total{kind=\"x\"} 3\n# HELP c_seconds C.\n# TYPE c_seconds histogram\nc_seconds_bucket{le=\"+Inf\"} 2\n\
            # HELP build_info Version.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n";
        assert_eq!(from_open_metrics(open), plain);
    }
}
