//! The tower layer: a client of `http` types that keeps to what its server asked for.

use crate::client::body::WatchedBody;
use crate::client::caller::{Ask, Caller, Draw, Refused, Why};
use crate::client::fields::SENDER;
use flashweir_feedback::caller::{DEADLINE, deadline_text, trace_id, urgency};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// In a request's extensions: its place in the order of importance, 0 the first. Without it the urgency of
/// `Priority` counts (RFC 9218), and without that the request comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank(pub u8);

/// In a request's extensions: when its answer is of no use any more. The request carries what is left as
/// `Flashweir-Deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Instant);

/// In a request's extensions: how often it was sent before. From 1 on it draws on the retry budget; a retry
/// layer outside of this one sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(pub u32);

/// Makes [`Overload`] of a client.
#[derive(Clone, Debug)]
pub struct OverloadLayer(Caller);

/// A client that asks its [`Caller`] before it sends.
#[derive(Clone, Debug)]
pub struct Overload<S> {
    client: S,
    caller: Caller,
}

/// Error in place of a response.
#[derive(Debug)]
pub enum OverloadError<E> {
    /// The request was not sent, or its deadline passed while its response was awaited.
    Refused(Refused),
    /// The client's own error.
    Client(E),
}

type Answered<R, E> = Result<Response<WatchedBody<R>>, OverloadError<E>>;

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const PRIORITY: HeaderName = HeaderName::from_static("priority");
const DEADLINE_NAME: HeaderName = HeaderName::from_static(DEADLINE);

impl OverloadLayer {
    /// For all clients of one node.
    #[must_use]
    pub fn new(caller: Caller) -> Self {
        Self(caller)
    }
}

impl<S> Layer<S> for OverloadLayer {
    type Service = Overload<S>;

    fn layer(&self, client: S) -> Overload<S> {
        Overload { client, caller: self.0.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Overload<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
{
    type Response = Response<WatchedBody<R>>;
    type Error = OverloadError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Answered<R, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.client.poll_ready(cx).map_err(OverloadError::Client)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The client that was ready goes with the request; its clone has to get ready again.
        let fresh = self.client.clone();
        let mut client = std::mem::replace(&mut self.client, fresh);
        let caller = self.caller.clone();
        Box::pin(async move {
            let ask = ask_of(&request);
            let pass = caller.admit(&ask).await.map_err(OverloadError::Refused)?;
            // A name that is no field's value cannot be sent; then the node signs nothing for this caller.
            let name = HeaderValue::from_str(caller.node().sender()).ok();
            request.headers_mut().extend(name.map(|name| (SENDER, name)));
            let Some(deadline) = ask.deadline else {
                return finish(&caller, pass, client.call(request).await);
            };
            let left = deadline_text(deadline.saturating_duration_since(Instant::now()));
            // Digits are a valid value.
            request.headers_mut().extend(HeaderValue::try_from(left).ok().map(|left| (DEADLINE_NAME, left)));
            match tokio::time::timeout_at(deadline, client.call(request)).await {
                Ok(answer) => finish(&caller, pass, answer),
                Err(_) => {
                    pass.unanswered();
                    let node = caller.node().label().to_owned();
                    let retry_after = std::time::Duration::ZERO;
                    Err(OverloadError::Refused(Refused { node, why: Why::NoAnswer, retry_after }))
                }
            }
        })
    }
}

fn finish<R, E>(
    caller: &Caller,
    pass: crate::client::Pass,
    answer: Result<Response<R>, E>,
) -> Answered<R, E> {
    match answer {
        Ok(response) => {
            pass.answered(response.status(), response.headers());
            Ok(response.map(|body| WatchedBody::new(body, caller.node().clone())))
        }
        Err(error) => {
            pass.unanswered();
            Err(OverloadError::Client(error))
        }
    }
}

fn ask_of<B>(request: &Request<B>) -> Ask {
    let (extensions, headers) = (request.extensions(), request.headers());
    let read = |name: HeaderName, parse: fn(&[u8]) -> Option<u8>| {
        headers.get(name).and_then(|value| parse(value.as_bytes()))
    };
    let rank = extensions.get::<Rank>().map(|rank| rank.0).or_else(|| read(PRIORITY, urgency));
    let is_retry = extensions.get::<Attempt>().is_some_and(|attempt| attempt.0 > 0);
    Ask {
        rank: rank.unwrap_or(Ask::default().rank),
        deadline: extensions.get::<Deadline>().map(|deadline| deadline.0),
        budget: if is_retry { Draw::Withdraw } else { Draw::Deposit },
        trace: trace_of(headers),
    }
}

fn trace_of(headers: &HeaderMap) -> Option<u128> {
    headers.get(TRACE_PARENT).and_then(|value| trace_id(value.as_bytes()))
}

impl<E: fmt::Display> fmt::Display for OverloadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for OverloadError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Client(error) => error.source(),
        }
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
