//! Sends requests at a rate, as far as the service lets it: `cargo run -p flashweir-tower --features client
//! --example caller -- http://127.0.0.1:9001/`.
//!
//! The client is hyper's, one connection for each request; what matters is the layer around it.

use bytes::Bytes;
use flashweir_tower::client::{
    Caller, Deadline, Keys, Node, NodeSettings, OverloadError, OverloadLayer, Rank,
};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tower_layer::Layer as _;
use tower_service::Service;

const REQUESTS: u32 = 200;
const EVERY: Duration = Duration::from_millis(10);
const DEADLINE: Duration = Duration::from_secs(2);

/// Any HTTP client that is a `tower` service will do.
#[derive(Clone)]
struct Client;

impl Service<Request<Empty<Bytes>>> for Client {
    type Response = Response<Incoming>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let authority = request.uri().authority().ok_or("no host")?.to_string();
            let stream = TcpStream::connect(&authority).await?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            Ok(sender.send_request(request).await?)
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let uri: Uri = arguments.next().ok_or("expected a URL, and perhaps a file of keys")?.parse()?;
    let keys = arguments.next().map(|file| Keys::load(file.as_ref())).transpose()?.unwrap_or_default();
    let node = Node::new(NodeSettings::new("shop", "api"), keys);
    let mut client = OverloadLayer::new(Caller::new(node.clone())).layer(Client);
    let mut tasks = Vec::new();
    for number in 0..REQUESTS {
        let mut request =
            Request::get(uri.clone()).header("host", uri.host().unwrap_or_default()).body(Empty::new())?;
        // Every tenth is a checkout, which is more important than the rest.
        request.extensions_mut().insert(Rank(if number % 10 == 0 { 0 } else { 5 }));
        request.extensions_mut().insert(Deadline(Instant::now() + DEADLINE));
        let sending = client.call(request);
        tasks.push(tokio::spawn(async move {
            match sending.await {
                // A response that is not read to its end would keep its connection.
                Ok(response) => drop(response.into_body().collect().await),
                Err(OverloadError::Refused(refused)) => eprintln!("request {number}: {refused}"),
                Err(OverloadError::Client(error)) => eprintln!("request {number}: {error}"),
            }
        }));
        sleep(EVERY).await;
    }
    for task in tasks {
        task.await?;
    }
    let report = node.report();
    println!("sent {} of {}, condition {}", report.sent, report.arrived, report.condition.as_str());
    Ok(())
}
