//! Quotas of an upstream that counts this gateway as a whole (`upstream.obey_quota`): read from heads, and
//! from trailers, where a gRPC answer with messages says how it went.

use crate::pipeline::PipelineHost;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_core::Duration;
use flashweir_feedback::caller::{Quota, quota_of};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::time::SystemTime;

/// Hears the trailers of one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrailerQuota(ServiceKey);

impl TrailerQuota {
    /// Of a response of this service.
    pub(crate) fn new(service: ServiceKey) -> Self {
        Self(service)
    }

    /// The trailers came.
    pub(crate) fn hear(self, pipeline: &PipelineHost, trailers: &HeaderMap) {
        pipeline.hear_quota(self.0, spent_for(None, trailers));
    }
}

/// For how long a head with this status, or trailers without one, say that the quota is spent.
pub(crate) fn spent_for(status: Option<StatusCode>, fields: &HeaderMap) -> Option<Duration> {
    let field = |name: &str| fields.get(name).map(HeaderValue::as_bytes);
    let quota = quota_of(status.map(|status| status.as_u16()), field, until_date)?;
    let Quota { remaining, reset } = quota;
    (remaining == 0).then_some(reset)
}

/// The time until an HTTP date, zero for one that is over.
fn until_date(value: &[u8]) -> Option<Duration> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_spent_where_nothing_is_left() {
        let of = |fields: &[(&'static str, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            spent_for(None, &fields.collect()).map(|time| time.as_millis())
        };
        assert_eq!(of(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "40")]), Some(40));
        assert_eq!(of(&[("ratelimit", "\"a\";r=0;t=2")]), Some(2_000));
        assert_eq!(of(&[("ratelimit", "\"a\";r=1;t=2")]), None);
        let over = [("grpc-status", "8"), ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")];
        assert_eq!(of(&over), Some(0));
    }
}
