//! A service with workers that take their time, and crowds that come to it.

use crate::{Admission, AdmissionError, AdmissionLayer, Refused};
use http::{Request, Response};
use http_body_util::Full;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{self, Instant};
use tower_layer::Layer as _;
use tower_service::Service;

pub(super) type Page = Full<&'static [u8]>;
pub(super) type Answer = Result<Response<crate::AdmittedBody<Page>>, AdmissionError<Infallible>>;

/// Workers, each of which takes `takes` for a request; requests beyond their number wait for one.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    pub(super) places: Arc<Semaphore>,
    pub(super) takes: Duration,
}

impl Workers {
    pub(super) fn new(count: usize, takes: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(count)), takes }
    }
}

impl Service<Request<()>> for Workers {
    type Response = Response<Page>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Page>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        let workers = self.clone();
        Box::pin(async move {
            let _worker = workers.places.acquire().await;
            time::sleep(workers.takes).await;
            Ok(Response::new(Full::from(&b""[..])))
        })
    }
}

pub(super) fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).expect("a request")
}

/// Outcome of a crowd.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub(super) in_time: usize,
    pub(super) late: usize,
    pub(super) refused: Vec<Refused>,
}

impl Met {
    pub(super) fn all(&self) -> usize {
        self.in_time + self.late + self.refused.len()
    }
}

/// Requests of one kind on their way.
pub(super) struct Crowd(Vec<(Instant, JoinHandle<(Answer, Duration)>)>);

/// Sends one request.
pub(super) fn send(service: &Admission<Workers>, request: Request<()>) -> JoinHandle<(Answer, Duration)> {
    let mut service = service.clone();
    tokio::spawn(async move {
        let began = Instant::now();
        let answer = service.call(request).await;
        (answer, began.elapsed())
    })
}

/// Sends requests for a path, evenly at a rate for some time.
pub(super) async fn crowd(service: &Admission<Workers>, path: &str, rps: f64, lasts: Duration) -> Crowd {
    let mut sent = Vec::new();
    let (began, count) = (Instant::now(), (rps * lasts.as_secs_f64()) as u32);
    for number in 0..count {
        time::sleep_until(began + Duration::from_secs_f64(f64::from(number) / rps)).await;
        sent.push((Instant::now(), send(service, get(path))));
    }
    Crowd(sent)
}

impl Crowd {
    /// Results of the requests sent from `from` on, in time if within `target`.
    pub(super) async fn met(self, from: Instant, target: Duration) -> Met {
        let mut met = Met::default();
        for (at, sent) in self.0 {
            let (answer, took) = sent.await.expect("an answer");
            match answer {
                _ if at < from => {}
                Ok(_) if took <= target => met.in_time += 1,
                Ok(_) => met.late += 1,
                Err(AdmissionError::Refused(refused)) => met.refused.push(refused),
                Err(AdmissionError::Service(never)) => match never {},
            }
        }
        met
    }
}

pub(super) const TARGET: Duration = Duration::from_secs(1);

/// Four workers that take 50 ms, 80 requests a second, behind a layer with a target of a second.
pub(super) fn four_workers() -> (AdmissionLayer, Admission<Workers>) {
    let layer = AdmissionLayer::new(TARGET);
    let service = layer.layer(Workers::new(4, Duration::from_millis(50)));
    (layer, service)
}
