//! Cost of a request through the layer, beside the bare service and a fixed limit of tower: one thread, a
//! service that answers at once.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_tower::AdmissionLayer;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use std::convert::Infallible;
use std::time::Duration;
use tower::limit::ConcurrencyLimitLayer;
use tower::util::ServiceExt as _;
use tower::{Layer as _, Service, service_fn};

type Page = Empty<&'static [u8]>;

async fn answer(_request: Request<()>) -> Result<Response<Page>, Infallible> {
    Ok(Response::new(Empty::new()))
}

async fn ask<S, R>(service: &mut S)
where
    S: Service<Request<()>, Response = Response<R>>,
    S::Error: std::fmt::Debug,
    R: http_body::Body<Error = Infallible>,
{
    let request = Request::get("/page").body(()).expect("a request");
    let response = service.ready().await.expect("ready").call(request).await.expect("a response");
    response.into_body().collect().await.expect("a body");
}

fn cost(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut bare = service_fn(answer);
    criterion.bench_function("bare service", |bench| bench.iter(|| runtime.block_on(ask(&mut bare))));
    let mut fixed = ConcurrencyLimitLayer::new(64).layer(service_fn(answer));
    criterion.bench_function("ConcurrencyLimit", |bench| bench.iter(|| runtime.block_on(ask(&mut fixed))));
    let mut learned = AdmissionLayer::new(Duration::from_secs(1)).layer(service_fn(answer));
    criterion.bench_function("AdmissionLayer", |bench| bench.iter(|| runtime.block_on(ask(&mut learned))));
}

criterion_group!(benches, cost);
criterion_main!(benches);
