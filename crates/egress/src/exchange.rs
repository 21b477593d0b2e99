//! Sends one request within deadline, limit and budget, and tries again where that may help and costs no more
//! than allowed.
//!
//! | what came | tried again, within the budget |
//! |---|---|
//! | no connection | on another server, or on the same: none of the request was sent |
//! | a reset, or no answer in time | idempotent requests only (RFC 9110 §9.2.2) |
//! | a status of `retry.statuses` | idempotent requests, unless the server's limit holds or it says to wait longer than the deadline or a second |
//! | any other answer | never |

use crate::body::{AnswerBody, Body, RequestBody};
use crate::refusal::RefusalResponse;
use crate::target::{Endpoint, RoutedTarget};
use flashweir_core::Duration;
use flashweir_http::upstream::{UpstreamError, UpstreamErrorKind};
use flashweir_telemetry::EgressRefusal;
use flashweir_tower::client::{
    Ask, DEADLINE, Draw, GRPC_TIMEOUT, Refused, SENDER, WatchedBody, Why, deadline_text, grpc_timeout_text,
    parse_grpc_timeout, retry_after,
};
use http::{HeaderName, HeaderValue, Method, Request, Response, request};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use tokio::time::{Instant, sleep, timeout_at};

/// One request, ready to be sent any number of times.
pub(crate) struct Exchange<'a> {
    pub(crate) target: &'a RoutedTarget,
    pub(crate) head: &'a request::Parts,
    pub(crate) rank: u8,
    pub(crate) deadline: Instant,
    pub(crate) trace: Option<u128>,
    pub(crate) is_retry: bool,
}

/// Boxed, because a response is much larger than what else an attempt may end with.
type Answer = Box<Response<AnswerBody>>;

/// End of one attempt.
enum Ended {
    Answered(Answer),
    /// It was not sent, by our own decision.
    Refused(RefusalResponse),
    /// No answer came. Whether none of it was sent.
    Failed(UpstreamErrorKind),
}

/// A server that asks to wait longer than this before a retry is not asked again: the process decides.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(1);
const DEADLINE_NAME: HeaderName = HeaderName::from_static(DEADLINE);

impl Exchange<'_> {
    /// Sends it until an answer comes that is passed on.
    ///
    /// # Errors
    /// [`RefusalResponse`]: what the process gets instead of an answer.
    pub(crate) async fn run(&self, body: RequestBody) -> Result<Answer, RefusalResponse> {
        let mut next = Some(body);
        let mut tried: Vec<SocketAddr> = Vec::new();
        let mut budget = if self.is_retry { Draw::Withdraw } else { Draw::Deposit };
        for attempt in 1.. {
            let Some(endpoint) = self.target.choose(self.rank, &tried) else {
                let text = "the target has no server: its host has no address";
                return Err(RefusalResponse::new(EgressRefusal::Unresolved, &self.target.config.name, text));
            };
            tried.push(endpoint.server.address);
            // An attempt follows another one only where its body was kept.
            let Some(body) = next.take() else { break };
            next = body.copy();
            let hedge = self.target.config.hedge_after.filter(|_| attempt == 1 && self.is_idempotent());
            let ended = match (hedge, next.as_ref().and_then(RequestBody::copy)) {
                (Some(after), Some(copy)) => self.hedged(&endpoint, body, copy, budget, after).await,
                _ => self.attempt(&endpoint, body, budget).await,
            };
            let is_last = attempt >= self.target.config.attempts_max || next.is_none();
            let wait = if is_last { None } else { self.retry_wait(&endpoint, &ended) };
            let may_retry = wait.is_some() && endpoint.caller.may_retry();
            match (wait, ended) {
                (Some(wait), _) if may_retry => {
                    sleep(wait).await;
                    self.target.view.counters.retries.increment();
                    budget = Draw::Granted;
                }
                (_, Ended::Answered(answer)) => return Ok(answer),
                (_, Ended::Refused(refusal)) => return Err(refusal),
                (_, Ended::Failed(kind)) => return Err(self.failed(kind)),
            }
        }
        Err(self.failed(UpstreamErrorKind::NoUpstream))
    }

    /// One attempt, and a second one on another server if the first takes long. The first answer counts; the
    /// other attempt is cut.
    async fn hedged(
        &self,
        endpoint: &Rc<Endpoint>,
        body: RequestBody,
        copy: RequestBody,
        budget: Draw,
        after: Duration,
    ) -> Ended {
        let mut first = pin!(self.attempt(endpoint, body, budget));
        tokio::select! {
            biased;
            ended = &mut first => return ended,
            () = sleep(after) => {}
        }
        let tried = [endpoint.server.address];
        let other = self.target.choose(self.rank, &tried).filter(|other| {
            // A limited server needs no second copies.
            self.target.has_other(&tried)
                && other.caller.node().report().rate.is_none()
                && endpoint.caller.may_retry()
        });
        let Some(other) = other else { return first.await };
        self.target.view.counters.hedges.increment();
        let mut second = pin!(self.attempt(&other, copy, Draw::Granted));
        tokio::select! {
            biased;
            ended = &mut first => if matches!(ended, Ended::Answered(_)) { ended } else { second.await },
            ended = &mut second => if matches!(ended, Ended::Answered(_)) { ended } else { first.await },
        }
    }

    async fn attempt(&self, endpoint: &Rc<Endpoint>, body: RequestBody, budget: Draw) -> Ended {
        let ask = Ask { rank: self.rank, deadline: Some(self.deadline), budget, trace: self.trace };
        let pass = match endpoint.caller.admit(&ask).await {
            Ok(pass) => pass,
            Err(refused) => {
                return Ended::Refused(RefusalResponse::of_node(
                    &self.target.config.name,
                    endpoint,
                    &refused,
                ));
            }
        };
        let sending = endpoint.upstreams.send(self.request(endpoint, body));
        match timeout_at(self.deadline, sending).await {
            Ok(Ok(answer)) => {
                pass.answered(answer.status(), answer.headers());
                Ended::Answered(Box::new(
                    answer.map(|body| WatchedBody::new(body, endpoint.caller.node().clone())),
                ))
            }
            Ok(Err(error)) => {
                if says_nobody_answers(&error) {
                    pass.unanswered();
                }
                Ended::Failed(error.kind)
            }
            Err(_) => {
                pass.unanswered();
                let (node, retry_after) = (endpoint.caller.node().label().to_owned(), Duration::ZERO);
                let refused = Refused { node, why: Why::NoAnswer, retry_after };
                Ended::Refused(RefusalResponse::of_node(&self.target.config.name, endpoint, &refused))
            }
        }
    }

    fn request(&self, endpoint: &Endpoint, body: RequestBody) -> Request<RequestBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = self.head.uri.clone();
        *request.headers_mut() = self.head.headers.clone();
        // Names were checked when the configuration was read.
        let name = HeaderValue::from_str(endpoint.caller.node().sender()).ok();
        request.headers_mut().extend(name.map(|name| (SENDER, name)));
        let left = self.deadline.saturating_duration_since(Instant::now());
        let fields = request.headers_mut();
        if let Some(said) = fields.get(GRPC_TIMEOUT).and_then(|value| parse_grpc_timeout(value.as_bytes()))
            && let Some(value) =
                grpc_timeout_text(left.min(said)).and_then(|text| HeaderValue::try_from(text).ok())
        {
            fields.insert(GRPC_TIMEOUT, value);
        }
        let left = deadline_text(left);
        // Digits are a valid value.
        request.headers_mut().extend(HeaderValue::try_from(left).ok().map(|left| (DEADLINE_NAME, left)));
        request
    }

    /// Wait before the next attempt; none where there is to be none.
    fn retry_wait(&self, endpoint: &Endpoint, ended: &Ended) -> Option<Duration> {
        match ended {
            Ended::Refused(_) => None,
            Ended::Failed(kind) if kind.may_retry() => {
                (*kind != UpstreamErrorKind::Full).then_some(Duration::ZERO)
            }
            Ended::Failed(UpstreamErrorKind::RequestBody) => None,
            Ended::Failed(_) => self.is_idempotent().then_some(Duration::ZERO),
            Ended::Answered(answer) => {
                let is_wanted = self.is_idempotent()
                    && self.target.config.retry_statuses.contains(&answer.status())
                    && endpoint.caller.node().report().limit.is_none();
                let left = self.deadline.saturating_duration_since(Instant::now());
                // Where the server says nothing, at once: most such failures are of one server or one moment.
                let wait = retry_after(answer.headers()).unwrap_or(Some(Duration::ZERO));
                wait.filter(|wait| is_wanted && *wait <= RETRY_WAIT_MAX && *wait < left)
            }
        }
    }

    fn is_idempotent(&self) -> bool {
        self.head.method.is_idempotent() && self.head.method != Method::CONNECT
    }

    fn failed(&self, kind: UpstreamErrorKind) -> RefusalResponse {
        let (why, text) = match kind {
            UpstreamErrorKind::Full => {
                (EgressRefusal::Connections, "every connection allowed to the server is busy")
            }
            UpstreamErrorKind::RequestBody => (EgressRefusal::BadRequest, "the request's body failed"),
            UpstreamErrorKind::Connect | UpstreamErrorKind::ConnectTimeout => {
                (EgressRefusal::Failed, "the server cannot be reached")
            }
            _ => (EgressRefusal::Failed, "the server did not answer properly"),
        };
        RefusalResponse::new(why, &self.target.config.name, text)
    }
}

/// Returns whether an error says that the server answers nothing. One that answers nonsense is there.
fn says_nobody_answers(error: &UpstreamError) -> bool {
    use UpstreamErrorKind::{Connect, ConnectTimeout, HeaderTimeout, Reset};
    matches!(error.kind, Connect | ConnectTimeout | HeaderTimeout | Reset)
}

/// The body of an answer that is passed on.
pub(crate) fn forwarded(body: AnswerBody) -> Body {
    Body::Forwarded(Box::pin(body))
}
