//! The layer and its service.

use crate::ask::{Ask, Head};
use crate::body::AdmittedBody;
use crate::gatekeeper::{Admitted, Gatekeeper};
use crate::refused::AdmissionError;
use crate::settings::{Settings, SettingsError};
use crate::status::Status;
use flashweir_core::Hasher64;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body::Body;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// Makes [`Admission`] of a service. All services that one layer and its clones make share one limit.
#[derive(Clone)]
pub struct AdmissionLayer {
    gatekeeper: Arc<Gatekeeper>,
    classify: Option<Arc<Classify>>,
    hasher: Hasher64,
}

type Classify = dyn Fn(&Head<'_>) -> Ask + Send + Sync;

/// A service that admits as many requests as it can serve in time.
#[derive(Clone, Debug)]
pub struct Admission<S> {
    service: S,
    layer: AdmissionLayer,
}

type Answered<B, E> = Result<Response<AdmittedBody<B>>, AdmissionError<E>>;

impl AdmissionLayer {
    /// A layer with one class of requests, whose responses are to end within `target`.
    ///
    /// # Panics
    /// Where `target` is zero.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        Self::with_settings(&Settings::new(target)).expect("a target of more than zero")
    }

    /// A layer with these settings.
    ///
    /// # Errors
    /// [`SettingsError`] names the first setting that makes no sense.
    pub fn with_settings(settings: &Settings) -> Result<Self, SettingsError> {
        let policy = settings.policy()?;
        // Keys that clients cannot know.
        let random = RandomState::new();
        let hasher = Hasher64::new(random.hash_one(0), random.hash_one(1));
        Ok(Self { gatekeeper: Gatekeeper::new(policy), classify: None, hasher })
    }

    /// Class, client and deadline of each request. Without it all requests are of the first class and of one
    /// client, and deadlines are read by [`Head::deadline`].
    #[must_use]
    pub fn classify(self, classify: impl Fn(&Head<'_>) -> Ask + Send + Sync + 'static) -> Self {
        Self { classify: Some(Arc::new(classify)), ..self }
    }

    /// Present state.
    #[must_use]
    pub fn status(&self) -> Status {
        self.gatekeeper.status()
    }

    #[cfg(test)]
    pub(crate) fn is_driven(&self) -> bool {
        self.gatekeeper.is_driven()
    }

    fn ask<B>(&self, request: &Request<B>) -> (Ask, u32) {
        let head = Head::of(request);
        let ask = match &self.classify {
            Some(classify) => classify(&head),
            None => Ask { deadline: head.deadline(), ..Ask::default() },
        };
        let parts = [head.method.as_str().as_bytes(), head.uri.path().as_bytes()];
        (ask, (self.hasher.hash(&parts) >> u32::BITS) as u32)
    }
}

impl fmt::Debug for AdmissionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, service: S) -> Admission<S> {
        Admission { service, layer: self.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Admission<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
    R: Body,
{
    type Response = Response<AdmittedBody<R>>;
    type Error = AdmissionError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Answered<R, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx).map_err(AdmissionError::Service)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was ready goes with the request; its clone has to get ready first.
        let fresh = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, fresh);
        let gatekeeper = self.layer.gatekeeper.clone();
        let (ask, url_class) = self.layer.ask(&request);
        Box::pin(async move {
            let admitted = gatekeeper.admit(ask, url_class).await.map_err(AdmissionError::Refused)?;
            match service.call(request).await {
                Ok(response) => Ok(follow(response, admitted)),
                Err(error) => {
                    admitted.fail();
                    Err(AdmissionError::Service(error))
                }
            }
        })
    }
}

/// Keeps the place until the body has ended. Tunnels and event streams are no work once they have begun; an
/// error is a failure, or it would look like a fast service.
fn follow<R: Body>(response: Response<R>, admitted: Admitted) -> Response<AdmittedBody<R>> {
    let is_event_stream = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if response.status().is_server_error() {
        admitted.fail();
    } else if response.status() == StatusCode::SWITCHING_PROTOCOLS || is_event_stream {
        admitted.complete();
    } else {
        return response.map(|body| AdmittedBody::new(body, admitted));
    }
    response.map(AdmittedBody::without_place)
}
