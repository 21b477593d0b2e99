//! The same layer for services that cannot fail: refusals are responses.

use crate::body::AdmittedBody;
use crate::layer::{Admission, AdmissionLayer};
use crate::refused::AdmissionError;
use http::{Request, Response};
use http_body::Body;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Makes [`Answering`] of a service.
#[derive(Clone, Debug)]
pub struct AnsweringLayer(AdmissionLayer);

/// An [`Admission`] that answers refusals with [`Refused::into_response`](crate::Refused::into_response).
#[derive(Clone, Debug)]
pub struct Answering<S>(Admission<S>);

impl AdmissionLayer {
    /// This layer, answering refusals itself.
    #[must_use]
    pub fn answering(self) -> AnsweringLayer {
        AnsweringLayer(self)
    }
}

impl<S> Layer<S> for AnsweringLayer {
    type Service = Answering<S>;

    fn layer(&self, service: S) -> Answering<S> {
        Answering(self.0.layer(service))
    }
}

impl<S, B, R> Service<Request<B>> for Answering<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
    R: Body + Default + 'static,
{
    type Response = Response<AdmittedBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // Readiness never depends on admission, so that it is the service's own error.
        self.0.poll_ready(cx).map_err(|error| match error {
            AdmissionError::Service(error) => error,
            AdmissionError::Refused(refused) => unreachable!("{refused}: nothing was asked for"),
        })
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            match answer.await {
                Ok(response) => Ok(response),
                Err(AdmissionError::Refused(refused)) => Ok(refused.into_response()),
                Err(AdmissionError::Service(error)) => Err(error),
            }
        })
    }
}
