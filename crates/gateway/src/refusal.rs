//! The answer to a request that is not let in: quick, honest, and the same facts in the form the client
//! likes.
//!
//! Status 503 when the service is short, 429 when this client is over its own share; `Retry-After`; the two
//! `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers-10) when a ceiling in requests per second exists;
//! and `Flashweir-Decision: <id>; reason=<reason>` (and `; class=<class>` where the sentry decided), by which
//! an operator finds out why. Its head is written as lines: a refusal is to cost less than what it saves.

use crate::accept_field::{Form, preferred};
use crate::sentry::Refused;
use bytes::Bytes;
use flashweir_admission::retry_after::RetryAfter;
use flashweir_core::{DecisionId, Duration, Rate, Reason};
use flashweir_http::head::{Answer, AnswerHead, OwnHead};
use flashweir_http1::head::{FieldsView, KnownField};
use flashweir_http1::write::Decimal;
use flashweir_telemetry::{StatusClass, Unmeasured, WorkerMetrics};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, Method, StatusCode};
use std::fmt::Write as _;

const DECISION: HeaderName = HeaderName::from_static("flashweir-decision");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// One refusal, decided.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// Names it.
    pub(crate) id: DecisionId,
    /// Limit that refused.
    pub(crate) reason: Reason,
    /// Time until the client may come back.
    pub(crate) retry_after: RetryAfter,
    /// The ceiling that was met, where it is a rate.
    pub(crate) ceiling: Option<Rate>,
    /// Grounds of the sentry, where it decided.
    pub(crate) by_sentry: Option<Refused>,
    /// The client's source is listed because it ignores `Retry-After`: its connection is to end.
    pub(crate) is_impatient: bool,
}

/// Counts a refusal that is about to be sent, and the time `after` the request was received.
pub(crate) fn count_refusal(metrics: &WorkerMetrics, status: StatusCode, after: Duration) {
    let responses = &metrics.responses;
    responses.by_class.increment(StatusClass::of(status.as_u16()));
    responses.refusal_duration.record(after);
    metrics.measurement.unmeasured.increment(Unmeasured::Refusal);
}

impl Refusal {
    /// The response. `close` ends the HTTP/1.1 connection after it; HTTP/2 forbids a field for that.
    pub(crate) fn respond<'a>(
        &self,
        method: &Method,
        request_fields: impl Into<FieldsView<'a>>,
        close: bool,
    ) -> Answer<Bytes> {
        let form = preferred(request_fields.into().get(KnownField::Accept));
        let (content_type, body) = match form {
            Form::Problem => ("application/problem+json", self.problem()),
            Form::Html => ("text/html; charset=utf-8", self.page(method)),
            Form::Text => ("text/plain; charset=utf-8", self.text()),
        };
        let digits = Decimal::new(self.retry_after.jittered_s);
        let (seconds, id) = (digits.as_str(), self.id.digits());
        let (id, reason) = (id.as_str(), self.reason.as_str());
        let mut head = OwnHead::new(self.status(), body.len() as u64).closing(close);
        head.put(&RETRY_AFTER, &[seconds]);
        head.put(&CONTENT_TYPE, &[content_type]);
        head.put(&CACHE_CONTROL, &["no-store"]);
        // An operator sees from the outside how a request was taken.
        match &self.by_sentry {
            Some(refused) => {
                head.put(&DECISION, &[id, "; reason=", reason, "; class=", refused.class_name()])
            }
            None => head.put(&DECISION, &[id, "; reason=", reason]),
        }
        if let Some(ceiling) = self.ceiling {
            let (quota, window_s) = quota(ceiling);
            let (quota, window_s) = (Decimal::new(quota), Decimal::new(window_s));
            let policy = ["\"", reason, "\";q=", quota.as_str(), ";w=", window_s.as_str()];
            head.put(&RATE_LIMIT_POLICY, &policy);
            head.put(&RATE_LIMIT, &["\"", reason, "\";r=0;t=", seconds]);
        }
        // HEAD has the fields of GET, the length included, and no body (RFC 9110 §9.3.2).
        let body = if method == Method::HEAD { Bytes::new() } else { Bytes::from(body) };
        Answer::new(AnswerHead::Own(head), body)
    }

    /// Status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.reason.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
    }

    fn own_share(&self) -> bool {
        self.reason.status() == 429
    }

    fn text(&self) -> String {
        let why = match self.reason {
            Reason::CallerDeadline => "The time that the request leaves for an answer is too short",
            _ if self.own_share() => "Too many requests from you",
            _ => "More people are here than fit",
        };
        let (seconds, id) = (Decimal::new(self.retry_after.jittered_s), self.id.digits());
        [why, ". Please try again in ", seconds.as_str(), " s. Decision ", id.as_str(), ".\n"].concat()
    }

    /// RFC 9457, with the problem types of the RateLimit draft.
    fn problem(&self) -> String {
        let (kind, title) = if self.own_share() {
            ("quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded")
        } else {
            (
                "temporary-reduced-capacity",
                "Request cannot be satisfied due to temporary server capacity constraints",
            )
        };
        let mut body = format!(
            "{{\"type\":\"https://iana.org/assignments/http-problem-types#{kind}\",\"title\":\"{title}\",\
             \"status\":{},\"reason\":\"{reason}\",\"decision\":\"{}\",\"retry_after\":{}",
            self.reason.status(),
            self.id,
            self.retry_after.jittered_s,
            reason = self.reason,
        );
        if self.own_share() || self.ceiling.is_some() {
            // Writing to a String cannot fail.
            let _ = write!(body, ",\"violated-policies\":[\"{}\"]", self.reason);
        }
        body.push('}');
        body
    }

    /// For people: no script, nothing to fetch, and a page asked for with GET comes back by itself.
    fn page(&self, method: &Method) -> String {
        let seconds = self.retry_after.jittered_s;
        let again = if *method == Method::GET {
            format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">")
        } else {
            String::new()
        };
        let (title, what_now) = if *method == Method::GET {
            ("Very busy right now", "This page tries again by itself")
        } else {
            ("Very busy right now", "Nothing was changed. Please try again")
        };
        format!(
            "{PAGE_START}{again}<title>{title}</title></head><body><main><h1>{title}</h1><p>More people are here than \
             fit. To keep the site fast for those inside, new visitors are let in as room appears.</p><p>{what_now} \
             in {seconds} s.</p><p><small>Decision {id}</small></p></main></body></html>\n",
            id = self.id
        )
    }
}

const PAGE_START: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><meta name=\"robots\" content=\"noindex\">\
<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;margin:0;display:grid;\
place-items:center;min-height:100vh}main{max-width:32rem;padding:2rem}small{opacity:.7}</style>";

/// The ceiling as whole requests in whole seconds: below one a second the window grows instead.
fn quota(ceiling: Rate) -> (u64, u64) {
    match ceiling.as_milli() {
        0 => (0, 1),
        milli if milli >= 1_000 => (milli / 1_000, 1),
        milli => (1, 1_000_u64.div_ceil(milli)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Duration;
    use http::header::ACCEPT;
    use http::{HeaderMap, HeaderValue, Response};

    fn refusal(reason: Reason, ceiling: Option<Rate>) -> Refusal {
        let retry_after = RetryAfter::new(Duration::from_secs(4), 1, 2);
        Refusal {
            id: DecisionId::new(1, 2, 3),
            reason,
            retry_after,
            ceiling,
            by_sentry: None,
            is_impatient: false,
        }
    }

    fn respond(refusal: &Refusal, method: Method, accept: &'static str) -> Response<Bytes> {
        let fields = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        refusal.respond(&method, &fields, false).into()
    }

    fn field<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
        response.headers().get(name).map_or("(absent)", |value| value.to_str().expect("ascii"))
    }

    #[test]
    fn a_crowd_is_refused_with_everything_a_client_can_use() {
        let refusal = refusal(Reason::FlashCrowd, Some(Rate::from_per_second(120.7)));
        let response = respond(&refusal, Method::GET, "*/*");
        let seconds = refusal.retry_after.jittered_s;
        assert_eq!(response.status(), 503);
        assert_eq!(field(&response, "retry-after"), seconds.to_string());
        assert_eq!(field(&response, "cache-control"), "no-store");
        assert_eq!(field(&response, "flashweir-decision"), format!("{}; reason=flash_crowd", refusal.id));
        assert_eq!(field(&response, "ratelimit-policy"), "\"flash_crowd\";q=120;w=1");
        assert_eq!(field(&response, "ratelimit"), format!("\"flash_crowd\";r=0;t={seconds}"));
        assert_eq!(field(&response, "content-length"), response.body().len().to_string());
        assert_eq!(field(&response, "connection"), "(absent)");
        assert!((4..=8).contains(&seconds));
    }

    #[test]
    fn a_client_over_its_share_gets_429_and_no_rate_that_does_not_exist() {
        let response = respond(&refusal(Reason::ConnectionsPerClient, None), Method::GET, "application/json");
        assert_eq!(response.status(), 429);
        assert_eq!(
            (field(&response, "ratelimit"), field(&response, "ratelimit-policy")),
            ("(absent)", "(absent)")
        );
        let problem: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
        assert_eq!(problem["violated-policies"][0], "connections_per_client");
        assert_eq!(problem["status"], 429);
    }

    #[test]
    fn a_problem_document_repeats_the_fields() {
        let refusal = refusal(Reason::FlashCrowd, Some(Rate::from_per_second(5.0)));
        let response = respond(&refusal, Method::POST, "application/problem+json");
        assert_eq!(field(&response, "content-type"), "application/problem+json");
        let problem: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(
            problem["type"],
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
        );
        assert_eq!(problem["decision"], refusal.id.to_string());
        assert_eq!(problem["retry_after"], refusal.retry_after.jittered_s);
    }

    #[test]
    fn a_page_comes_back_by_itself_only_when_asking_again_is_harmless() {
        let refusal = refusal(Reason::FlashCrowd, None);
        let page = |method| {
            String::from_utf8(respond(&refusal, method, "text/html").into_body().to_vec()).expect("utf-8")
        };
        let got = page(Method::GET);
        assert!(got.contains("http-equiv=\"refresh\"") && got.contains(&refusal.id.to_string()), "{got}");
        assert!(!got.contains("<script") && !got.contains("http:") && !got.contains("https:"), "{got}");
        assert!(!page(Method::POST).contains("refresh"));
    }

    #[test]
    fn head_has_the_fields_and_no_body() {
        let refusal = refusal(Reason::Draining, None);
        let (head, get) = (respond(&refusal, Method::HEAD, "*/*"), respond(&refusal, Method::GET, "*/*"));
        assert_eq!(field(&head, "content-length"), field(&get, "content-length"));
        assert!(head.body().is_empty() && !get.body().is_empty());
    }

    #[test]
    fn a_slow_ceiling_is_told_over_a_longer_window() {
        assert_eq!(quota(Rate::from_per_second(0.3)), (1, 4));
        assert_eq!(quota(Rate::ZERO), (0, 1));
        assert_eq!(quota(Rate::from_per_second(1.0)), (1, 1));
    }

    #[test]
    fn closing_is_said_only_when_asked() {
        let response = refusal(Reason::Connections, None).respond(&Method::GET, &HeaderMap::new(), true);
        assert_eq!(field(&response.into(), "connection"), "close");
    }
}
