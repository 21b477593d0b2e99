//! A replica's report and the answer to it, as JSON. Read strictly: both come over the network.

use flashweir_core::limits::{REPLICA_ORDERS, REPLICATION_NAME_BYTES, REPORT_DOCUMENTS};
use http::Uri;
use serde::{Deserialize, Serialize};

/// A replica's report of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    /// The replica as the redirectors' `targets` have it.
    pub(super) url: String,
    /// Load in the words of ORCA (Open Request Cost Aggregation).
    pub(super) orca: Orca,
    /// Requests in it.
    pub(super) in_flight: u32,
    /// The most wanted documents.
    pub(super) documents: Vec<ReportedDocument>,
}

/// The fields of ORCA that fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Orca {
    /// Requests per second that reached the replica.
    pub(super) rps_fractional: f64,
    /// The same over the high watermark.
    pub(super) application_utilization: f64,
}

/// One document of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReportedDocument {
    /// Host and target.
    pub(super) name: String,
    /// Requests per second.
    pub(super) rate_rps: f64,
    /// Requests whose answer has not begun.
    pub(super) in_flight: u32,
    /// A number for its version, in hexadecimal; empty where that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) version: String,
}

/// The answer to a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Queries as `DELETE /cache` takes them.
    #[serde(default)]
    pub(super) purge: Vec<String>,
    /// Documents whose copies go: they differed from others, or are no longer wanted there.
    #[serde(default)]
    pub(super) invalidate: Vec<String>,
}

/// Reason for which a report is of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReportError {
    /// It is not what a replica sends.
    #[error(
        "it is no report of a replica: expected JSON with `url`, `orca`, `in_flight` and at most {REPORT_DOCUMENTS} `documents`"
    )]
    Malformed,
    /// A number in it makes no sense.
    #[error("`{0}` is out of range, expected a finite number of 0 or more")]
    OutOfRange(&'static str),
}

impl Report {
    pub(super) fn parse(body: &[u8]) -> Result<(Self, Uri), ReportError> {
        let report: Self = serde_json::from_slice(body).map_err(|_| ReportError::Malformed)?;
        let url = report.url.parse::<Uri>().ok().filter(|url| url.host().is_some());
        let fits = |it: &ReportedDocument| it.name.len() <= REPLICATION_NAME_BYTES && it.version.len() <= 16;
        if report.documents.len() > REPORT_DOCUMENTS || !report.documents.iter().all(fits) {
            return Err(ReportError::Malformed);
        }
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        if !is_rate(report.orca.rps_fractional) {
            return Err(ReportError::OutOfRange("orca.rps_fractional"));
        }
        if !report.documents.iter().all(|it| is_rate(it.rate_rps)) {
            return Err(ReportError::OutOfRange("documents.rate_rps"));
        }
        Ok((report, url.ok_or(ReportError::Malformed)?))
    }
}

impl ReportedDocument {
    /// The number of its version; zero where it is not known.
    pub(super) fn validator(&self) -> u64 {
        u64::from_str_radix(&self.version, 16).unwrap_or(0)
    }
}

impl Orders {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut orders: Self = serde_json::from_slice(body).ok()?;
        orders.purge.truncate(REPLICA_ORDERS);
        orders.invalidate.truncate(REPLICA_ORDERS);
        Some(orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, proptest};

    const GOOD: &str = r#"{"url":"http://a:81","orca":{"rps_fractional":2.5,"application_utilization":0.01},"in_flight":1,
        "documents":[{"name":"a/b","rate_rps":2.5,"in_flight":0,"version":"ff"}]}"#;

    #[test]
    fn reports_are_read_strictly() {
        let (report, url) = Report::parse(GOOD.as_bytes()).unwrap();
        assert_eq!((report.documents[0].validator(), url.port_u16()), (255, Some(81)));
        let wrong = |from: &str, to: &str| Report::parse(GOOD.replace(from, to).as_bytes()).unwrap_err();
        assert_eq!(wrong("http://a:81", "/a"), ReportError::Malformed);
        assert_eq!(
            wrong("\"rps_fractional\":2.5", "\"rps_fractional\":-1"),
            ReportError::OutOfRange("orca.rps_fractional")
        );
        assert_eq!(
            wrong("\"rate_rps\":2.5", "\"rate_rps\":-1"),
            ReportError::OutOfRange("documents.rate_rps")
        );
        assert_eq!(wrong("\"in_flight\":1", "\"in_flight\":-1"), ReportError::Malformed);
        assert_eq!(wrong("a/b", &"x".repeat(600)), ReportError::Malformed);
        assert_eq!(wrong("2.5", "1e999"), ReportError::Malformed);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _read = (Report::parse(&body), Orders::parse(&body));
        }
    }
}
