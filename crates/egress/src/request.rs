//! One request of the process, from its head to what the process gets.

use crate::body::{Body, RequestBody};
use crate::config::Ranks;
use crate::exchange::{Exchange, forwarded};
use crate::refusal::RefusalResponse;
use crate::target::RoutedTarget;
use bytes::Bytes;
use flashweir_core::limits::CLASSES;
use flashweir_http::client::X_FORWARDED_FOR;
use flashweir_http::fields::{
    ClientScheme, Hop, X_FORWARDED_HOST, X_FORWARDED_PROTO, prepare_request, prepare_response,
};
use flashweir_http::serve::IncomingBody;
use flashweir_telemetry::EgressRefusal;
use flashweir_tower::client::{
    DEADLINE, GRPC_TIMEOUT, parse_deadline, parse_grpc_timeout, trace_id, urgency,
};
use http::header::{CONNECTION, FORWARDED, HOST, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::Full;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::time::Instant;

/// State that the requests of one listener share.
pub(crate) struct Route {
    pub(crate) targets: Rc<[Rc<RoutedTarget>]>,
    pub(crate) ranks: Rc<Ranks>,
    /// The target of all requests; without one, `Host` says which.
    pub(crate) target: Option<usize>,
    pub(crate) rank: u8,
}

const PRIORITY: HeaderName = HeaderName::from_static("priority");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// Field with the number of times a gRPC client has sent a call before: it marks its retries itself.
const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");
/// By which an operator of the node finds out why it refused.
const DECISION: HeaderName = HeaderName::from_static("flashweir-decision");
/// They speak of clients of the process; the process alone knows who those are.
const OF_CLIENTS: [HeaderName; 4] = [FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO];

/// Answers one request.
pub(crate) async fn handle(
    route: Rc<Route>,
    peer: SocketAddr,
    request: Request<IncomingBody>,
) -> Response<Body> {
    let method = request.method().clone();
    match forward(&route, peer, request).await {
        Ok(response) => response,
        Err((target, refusal)) => {
            target.inspect(|target| target.view.counters.refused.increment(refusal.why));
            refusal.respond(&method)
        }
    }
}

type Refused = (Option<Rc<RoutedTarget>>, RefusalResponse);

async fn forward(
    route: &Route,
    peer: SocketAddr,
    request: Request<IncomingBody>,
) -> Result<Response<Body>, Refused> {
    let begun = Instant::now();
    let bad = |text: &str| (None, RefusalResponse::new(EgressRefusal::BadRequest, "", text));
    let (mut head, body) = request.into_parts();
    let version = head.version;
    // Read before they are taken out as fields of our own.
    let time_left = head.headers.get(DEADLINE).map(|value| parse_deadline(value.as_bytes())).transpose();
    let grpc = || parse_grpc_timeout(head.headers.get(GRPC_TIMEOUT)?.as_bytes());
    let time_left = time_left.map_err(|error| bad(&error.to_string()))?.or_else(grpc);
    let rank = rank_of(&route.ranks, &head.headers).unwrap_or(route.rank);
    let trace = head.headers.get(TRACE_PARENT).and_then(|value| trace_id(value.as_bytes()));
    let is_retry = head.headers.get(PREVIOUS_ATTEMPTS).is_some_and(|value| value != "0");
    let of_clients = take_all(&mut head.headers);
    let hop = Hop { peer: peer.ip(), is_peer_trusted: false, scheme: ClientScheme::Http };
    let prepared = prepare_request(&mut head, &hop).map_err(|error| bad(&error.to_string()))?;
    drop(take_all(&mut head.headers));
    for (name, value) in of_clients {
        head.headers.append(name, value);
    }
    if prepared.is_last_hop {
        return Ok(Response::new(Body::Own(Full::new(Bytes::new()))));
    }
    if prepared.wants_upgrade {
        // Not tunnelled: what follows would go past the limit.
        head.headers.remove(UPGRADE);
        head.headers.remove(CONNECTION);
    }
    let target = target_of(route, &mut head.headers).ok_or_else(|| {
        let text = "no target has this host: [[target]] hosts in the configuration says which have";
        (None, RefusalResponse::new(EgressRefusal::NoTarget, "", text))
    })?;
    target.view.counters.requests.increment();
    let deadline = begun + time_left.unwrap_or(target.config.deadline);
    let taking = tokio::time::timeout_at(deadline, RequestBody::take(body, version));
    let taken = match taking.await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err((EgressRefusal::BadRequest, "the request's body failed")),
        Err(_) => Err((EgressRefusal::Deadline, "the request's body came too late")),
    };
    let body = taken.map_err(|(why, text)| (Some(target.clone()), RefusalResponse::new(why, "", text)))?;
    let exchange = Exchange { target: &target, head: &head, rank, deadline, trace, is_retry };
    let answered = exchange.run(body).await;
    let answer = match answered {
        Ok(answer) => answer,
        Err(refusal) => return Err((Some(target), refusal)),
    };
    target.view.counters.answered.increment();
    target.view.counters.duration.record(begun.elapsed());
    let (mut head, body) = answer.into_parts();
    let decision = head.headers.get(DECISION).cloned();
    if prepare_response(&mut head).is_err() || head.status == StatusCode::SWITCHING_PROTOCOLS {
        let text = "the server's response cannot be passed on";
        return Err((Some(target), RefusalResponse::new(EgressRefusal::Failed, "", text)));
    }
    head.headers.extend(decision.map(|decision| (DECISION, decision)));
    // The version is this hop's own.
    head.version = Version::HTTP_11;
    Ok(Response::from_parts(head, forwarded(body)))
}

/// By the listener, or by the host; a listener of one target sends the host that the target's server expects.
fn target_of(route: &Route, headers: &mut HeaderMap) -> Option<Rc<RoutedTarget>> {
    if let Some(place) = route.target {
        // `Upstreams` writes the server's own authority.
        headers.remove(HOST);
        return route.targets.get(place).cloned();
    }
    let host = headers.get(HOST)?.to_str().ok()?.to_ascii_lowercase();
    let name = match host.strip_prefix('[') {
        Some(_) => {
            host.rsplit_once(']').map_or(host.as_str(), |(address, _)| address).trim_start_matches('[')
        }
        None => host.split(':').next().unwrap_or_default(),
    };
    let has = |known: &String| *known == host || known == name;
    route.targets.iter().find(|target| target.config.hosts.iter().any(has)).cloned()
}

fn rank_of(ranks: &Ranks, headers: &HeaderMap) -> Option<u8> {
    let value =
        ranks.field.as_ref().and_then(|field| headers.get(field)).and_then(|value| value.to_str().ok());
    let by_field = value.and_then(|value| ranks.values.get(value).copied());
    let by_priority =
        || headers.get(PRIORITY).filter(|_| ranks.priority).and_then(|value| urgency(value.as_bytes()));
    by_field.or_else(by_priority).filter(|rank| usize::from(*rank) < CLASSES)
}

fn take_all(headers: &mut HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let mut taken = Vec::new();
    for name in OF_CLIENTS {
        if headers.contains_key(&name) {
            taken.extend(headers.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
            headers.remove(&name);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_that_of_the_class_then_of_the_urgency() {
        let values = [("checkout".to_owned(), 0), ("search".to_owned(), 9)].into();
        let ranks = Ranks { field: Some(HeaderName::from_static("x-class")), values, priority: true };
        let of = |fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            rank_of(&ranks, &headers)
        };
        assert_eq!(of(&[("x-class", "search"), ("priority", "u=1")]), Some(9));
        assert_eq!(of(&[("x-class", "other"), ("priority", "u=1")]), Some(1));
        assert_eq!(of(&[("x-class", "other")]), None);
        assert_eq!(
            rank_of(&Ranks::default(), &HeaderMap::from_iter([(PRIORITY, HeaderValue::from_static("u=0"))])),
            None
        );
    }
}
