//! Overload feedback between nodes in `/status`, as JSON.

use super::upstreams::UpstreamFeedback;
use flashweir_admission::ladder::{Explanation, Rule};
use flashweir_core::Duration;
use flashweir_feedback::Advertisement;
use flashweir_telemetry::FeedbackFigures;
use http::Uri;
use serde_json::{Value, json};

/// The state of one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeedbackReport {
    /// Limit that the nodes in front are asked to keep.
    pub(crate) asks: Option<Advertisement>,
    /// Nodes in front that were heard lately.
    pub(crate) senders: usize,
    /// Explanation of the request to the nodes in front.
    pub(crate) ladder: Option<Explanation>,
    /// Limits that upstreams ask for.
    pub(crate) upstreams: Vec<UpstreamFeedback>,
    /// For how long the quota that the upstream gives this gateway is spent.
    pub(crate) quota: Option<Duration>,
}

impl FeedbackReport {
    /// For the metrics of this service.
    pub(crate) fn figures(&self, service: &str) -> FeedbackFigures {
        let upstreams = self.upstreams.iter().map(|upstream| {
            let asked_rps = upstream.limit.map(|limit| limit.rate.per_second());
            (upstream.upstream, asked_rps, upstream.age.map(|age| age.as_secs_f64()))
        });
        FeedbackFigures {
            service: service.to_owned(),
            senders: self.senders,
            asked_rps: self.asks.map(|asks| asks.rate.per_second()),
            level_s: self.ladder.as_ref().map_or(0.0, |why| why.level_us as f64 / 1e6),
            upstreams: upstreams.collect(),
        }
    }
}

/// One service in `/status`. `urls` are its upstreams, in order.
pub(crate) fn status(report: &FeedbackReport, urls: &[Uri]) -> Value {
    let ladder = report.ladder.as_ref();
    json!({
        "senders": report.senders,
        "asks": report.asks.map(|asks| json!({
            "from_rank": asks.from_rank,
            "severity": asks.severity,
            "rate_rps": asks.rate.per_second(),
        })),
        "ladder": ladder.map(|why| json!({
            "rule": rule(why.rule),
            "level_s": why.level_us as f64 / 1e6,
            "reference_s": why.reference_us as f64 / 1e6,
            "capacity_rps": why.capacity_rps,
            "unlimited_rps": why.unlimited_rps,
            "used_rps": why.used_rps,
        })),
        "quota_spent_s": report.quota.map(|quota| quota.as_secs_f64()),
        "upstreams": report.upstreams.iter().map(|upstream| json!({
            "url": urls.get(upstream.upstream).map(ToString::to_string),
            "age_s": upstream.age.map(|age| age.as_secs_f64()),
            "asks": upstream.limit.map(|limit| json!({
                "from_rank": limit.from_rank,
                "severity": limit.severity,
                "rate_rps": limit.rate.per_second(),
                "is_expired": limit.is_expired,
            })),
        })).collect::<Vec<_>>(),
    })
}

fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Unknown => "unknown",
        Rule::First => "first",
        Rule::Quiet => "quiet",
        Rule::Throttle => "throttle",
        Rule::Release => "release",
    }
}
