//! A real server with a crowd of real connections.

use crate::AdmissionLayer;
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower_service::Service as _;

/// The example of the manual.
#[expect(dead_code, reason = "its port is not for tests")]
#[path = "../../examples/axum.rs"]
mod example;

const TARGET: Duration = Duration::from_millis(200);
const TAKES: Duration = Duration::from_millis(20);
const WORKERS: usize = 4;
const CONNECTIONS: usize = 100;
/// Least length of the crowd.
const LASTS: Duration = Duration::from_millis(800);
/// It goes on for as long as this until it has met a refusal: on a busy machine its connections come one
/// after another.
const LASTS_MAX: Duration = Duration::from_secs(20);

/// Goal: under a real server a crowd is answered, with the page or with a refusal that says when to come
/// again. Method: a hundred connections that ask at once after each answer, before four workers that wait 20
/// ms; without the layer each answer takes half a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_connections_is_answered_by_a_real_server() {
    let workers = Arc::new(Semaphore::new(WORKERS));
    let page = move || async move {
        let _worker = workers.acquire().await;
        tokio::time::sleep(TAKES).await;
        "a page"
    };
    let layer = AdmissionLayer::new(TARGET);
    let app = Router::new().route("/", get(page)).layer(layer.clone().answering());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let (served, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let since = Instant::now();
    let clients = (0..CONNECTIONS).map(|_| {
        let (served, refused) = (served.clone(), refused.clone());
        tokio::spawn(async move {
            let stream = TcpStream::connect(address).await.expect("a server");
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
            let connection = tokio::spawn(connection);
            while since.elapsed() < LASTS || refused.load(Relaxed) == 0 && since.elapsed() < LASTS_MAX {
                let request =
                    Request::get("/").header("host", "page").body(Body::empty()).expect("a request");
                let answer = sender.send_request(request).await.expect("an answer");
                let (head, body) = answer.into_parts();
                let body = body.collect().await.expect("a whole body").to_bytes();
                if head.status == StatusCode::OK {
                    assert_eq!(&body[..], b"a page");
                    served.fetch_add(1, Relaxed);
                } else {
                    assert_eq!(head.status, StatusCode::SERVICE_UNAVAILABLE);
                    let seconds = head.headers["retry-after"].to_str().expect("digits").parse::<u64>();
                    assert!(seconds.is_ok_and(|seconds| seconds >= 1), "{head:?}");
                    refused.fetch_add(1, Relaxed);
                    // A real client would wait longer.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            drop(sender);
            connection.await.expect("no panic").expect("a clean end");
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("no panic");
    }
    server.abort();
    let (served, refused) = (served.load(Relaxed), refused.load(Relaxed));
    let status = layer.status();
    assert!(refused > 0, "{served} served: {status:?}");
    // Half of what the workers can do, for a machine that is busy with other tests.
    let possible = WORKERS as f64 * LASTS.as_secs_f64() / TAKES.as_secs_f64();
    assert!(f64::from(served) >= 0.5 * possible, "{served} of {possible}, {refused} refused: {status:?}");
    assert_eq!((status.in_flight, status.queued), (0, 0), "{status:?}");
    assert_eq!(status.completed, u64::from(served));
    assert_eq!(status.shed, u64::from(refused));
}

#[tokio::test]
async fn the_example_serves_pages_and_shows_its_limit() {
    let mut app = example::app().expect("settings");
    let mut ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let (head, body) = app.call(request).await.expect("an answer").into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        assert_eq!(head.status, StatusCode::OK);
        String::from_utf8(body.to_vec()).expect("text")
    };
    assert_eq!(ask("/").await, "a page\n");
    assert_eq!(ask("/checkout").await, "a page\n");
    let health = ask("/health").await;
    assert!(health.contains("limit: ") && health.contains("completed: 2,"), "{health}");
}
