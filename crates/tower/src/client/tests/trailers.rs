//! Goal: the layer hears what a gRPC answer says in its trailers. Method: hyper's client and server of
//! HTTP/2 on loopback.

use crate::client::{Caller, EndpointSettings, Node, NodeSettings, OverloadLayer, WatchedBody};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::{TcpListener, TcpStream};
use tower_layer::Layer as _;
use tower_service::Service;

#[derive(Clone)]
struct Client(SendRequest<Empty<Bytes>>);

impl Service<Request<Empty<Bytes>>> for Client {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Answers every call with a message and then says that the quota is spent.
async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper::service::service_fn(|_: Request<Incoming>| {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("8"));
            trailers.insert("grpc-retry-pushback-ms", HeaderValue::from_static("60000"));
            let body = Full::new(Bytes::from_static(b"\0\0\0\0\0")).with_trailers(ready(Some(Ok(trailers))));
            ready(Ok::<_, Infallible>(Response::new(body)))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

async fn called(obeys_quota: bool) -> (Node, WatchedBody<Incoming>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("a bound listener");
    tokio::spawn(serve(listener));
    let stream = TcpStream::connect(address).await.expect("the server");
    let connecting = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = connecting.await.expect("HTTP/2");
    tokio::spawn(connection);
    let mut settings = NodeSettings::new("shop", "api");
    settings.endpoint = EndpointSettings { obeys_quota, ..EndpointSettings::default() };
    let node = Node::new(settings, Default::default());
    let mut client = OverloadLayer::new(Caller::new(node.clone())).layer(Client(sender));
    std::future::poll_fn(|cx| client.poll_ready(cx)).await.expect("a connection");
    let request = Request::post(format!("http://{address}/stock.Stock/Get")).body(Empty::new());
    let response = client.call(request.expect("a request")).await.expect("an answer");
    (node, response.into_body())
}

#[tokio::test]
async fn a_quota_in_trailers_is_obeyed_once_they_are_read() {
    let (node, body) = called(true).await;
    assert_eq!(node.report().condition.as_str(), "open", "the head says nothing of it");
    let body = body.collect().await.expect("a whole answer");
    assert_eq!(node.report().condition.as_str(), "quota");
    // The caller's own reading of the trailers is not disturbed.
    assert_eq!(body.trailers().map(|trailers| trailers["grpc-status"].as_bytes()), Some(&b"8"[..]));
    assert_eq!(&*body.to_bytes(), b"\0\0\0\0\0");
}

#[tokio::test]
async fn a_quota_in_trailers_is_the_calls_own_where_quotas_are_not_obeyed() {
    let (node, body) = called(false).await;
    body.collect().await.expect("a whole answer");
    assert_eq!(node.report().condition.as_str(), "open");
}
