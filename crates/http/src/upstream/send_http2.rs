//! One request to one HTTP/2 upstream, by hyper.

use super::connect::ConnectTarget;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::multiplex::Http2Pool;
use super::repeat::{Loss, loss_of};
use super::response_body::UpstreamBody;
use super::shared::InFlight;
use super::{Outgoing, RequestBody, STALE_MAX, Upstreams};
use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Silence of an HTTP/2 upstream after which it gets a ping.
const PING_AFTER: Duration = Duration::from_secs(20);

impl<B: RequestBody> Upstreams<B> {
    pub(super) async fn send_http2(
        &self,
        pool: &Http2Pool<B>,
        outgoing: &mut Outgoing<'_, B>,
        mut in_flight: InFlight,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        let (index, settings) = (in_flight.index(), self.shared.settings());
        let target = self.shared.target(index);
        adapt(outgoing.head.parts_mut(), target);
        let mut stale = 0;
        // One for all rounds: a client waits no longer for being unlucky.
        let mut deadline = None;
        loop {
            let stream = pool.check_out(target, PING_AFTER).await?;
            let body = outgoing.unsent.take().expect("a round begins with a request that was not sent");
            // An upstream has words for "not begun" here, so any method may be sent once more.
            let kept = if outgoing.is_repeat { None } else { (self.copy)(&body) };
            let sent = Instant::now();
            let deadline = *deadline.get_or_insert(sent + settings.response_header_timeout);
            let answer =
                stream.sender.clone().try_send_request(copy_of(outgoing.head.parts_mut()).map(|()| body));
            let mut refused = match timeout_at(deadline, answer).await {
                // HTTP/2 switches no protocols (RFC 9113 §8.6).
                Ok(Ok(response)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(UpstreamError::new(UpstreamErrorKind::Malformed, Some(index)));
                }
                Ok(Ok(response)) if response.headers().len() > settings.response_fields_max => {
                    return Err(UpstreamError::new(UpstreamErrorKind::HeadTooLarge, Some(index)));
                }
                Ok(Ok(response)) => {
                    in_flight.answered(response.status(), settings.learns_response_times().then_some(sent));
                    stream.answered();
                    let idle_timeout = settings.body_idle_timeout;
                    return Ok(response
                        .map(|incoming| UpstreamBody::of_http2(incoming, stream, in_flight, idle_timeout)));
                }
                Ok(Err(refused)) => refused,
                Err(_) => {
                    in_flight.timed_out();
                    return Err(UpstreamError::new(UpstreamErrorKind::HeaderTimeout, Some(index)));
                }
            };
            outgoing.unsent = refused.take_message().map(Request::into_body);
            let error = refused.into_error();
            if outgoing.unsent.is_some() {
                // A connection that is going away is left out of the choice the next time.
                if !stream.sender.is_closed() || stale == STALE_MAX {
                    return Err(UpstreamError::from_hyper(error, index));
                }
                stale += 1;
                self.count(|counts| &mut counts.retries);
                continue;
            }
            let Some(loss) = loss_of(&stream, &error) else {
                return Err(UpstreamError::from_hyper(error, index));
            };
            if loss != Loss::Refused {
                pool.lost(&stream);
            }
            let may_repeat = loss != Loss::Unknown || outgoing.head.method().is_idempotent();
            outgoing.unsent = kept.filter(|_| may_repeat && self.grants_repeat(index));
            if outgoing.unsent.is_none() {
                return Err(UpstreamError::from_hyper(error, index));
            }
            outgoing.is_repeat = true;
        }
    }
}

fn copy_of(parts: &Parts) -> Request<()> {
    let mut copy = Request::new(());
    copy.method_mut().clone_from(&parts.method);
    copy.uri_mut().clone_from(&parts.uri);
    copy.headers_mut().clone_from(&parts.headers);
    *copy.version_mut() = parts.version;
    copy
}

/// Gives the head the form that HTTP/2 wants. Doing it twice changes nothing.
fn adapt(parts: &mut Parts, target: &ConnectTarget) {
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let host = parts.headers.get(HOST).filter(|host| !host.is_empty());
    let authority = host
        .and_then(|host| Authority::try_from(host.as_bytes()).ok())
        .or_else(|| parts.uri.authority().cloned())
        .unwrap_or_else(|| target.authority().clone());
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(target.scheme().clone());
    uri.authority = Some(authority);
    uri.path_and_query = Some(path);
    if let Ok(uri) = Uri::from_parts(uri) {
        parts.uri = uri;
    }
    for name in [HOST, CONNECTION, UPGRADE] {
        parts.headers.remove(name);
    }
    parts.version = Version::HTTP_2;
}
