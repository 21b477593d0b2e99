//! Served HTTP/2 connections, with a client that says exactly what the test wants said.

use crate::serve::HeadLimits;
use crate::serve::{Connection, ConnectionEnd, IncomingBody, ServeSettings, Served, Server};
use bytes::Bytes;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::duplex;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;

const SETTINGS: ServeSettings = ServeSettings {
    head: HeadLimits { bytes_max: 8_192, fields_max: 100 },
    head_timeout: Duration::from_secs(4),
    idle_timeout: Duration::from_secs(600),
    http2_streams_max: 10,
    http2_ping_after: Duration::from_secs(30),
};

fn run<F: Future>(test: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, test)
}

/// A client of a server with this service; its connection runs in a task.
async fn start<S, F, B>(service: S) -> (SendRequest<Bytes>, JoinHandle<Served>)
where
    S: Fn(Request<IncomingBody>, &Connection) -> F + Unpin + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
{
    let (client, server_side) = duplex(64 << 10);
    let served = spawn_local(async move {
        let server = Server::new(SETTINGS);
        server.serve(server.guard(server_side), None, service, pending()).await
    });
    let (sender, connection) = h2::client::handshake(client).await.unwrap();
    spawn_local(async move { drop(connection.await) });
    (sender.ready().await.unwrap(), served)
}

fn get() -> Request<()> {
    Request::get("http://a/").body(()).unwrap()
}

/// Statuses of the interim responses, then the final one.
async fn statuses(mut response: ResponseFuture) -> Vec<u16> {
    let mut statuses = Vec::new();
    while let Some(interim) = poll_fn(|cx| response.poll_informational(cx)).await {
        statuses.push(interim.unwrap().status().as_u16());
    }
    statuses.push(response.await.unwrap().status().as_u16());
    statuses
}

#[test]
fn interim_responses_come_before_the_answer_each_on_its_own_stream() {
    run(async {
        let service = |request: Request<IncomingBody>, connection: &Connection| {
            let connection = connection.clone();
            async move {
                let has_hints = request.uri().path() == "/";
                if has_hints {
                    connection.interims().push(StatusCode::EARLY_HINTS, &HeaderMap::new());
                    let later = std::pin::pin!(tokio::time::sleep(Duration::from_secs(1)));
                    connection.interims().during(later).await;
                    connection.interims().push(StatusCode::PROCESSING, &HeaderMap::new());
                }
                Ok(Response::new(Full::from("answer")))
            }
        };
        let (mut client, _served) = start(service).await;
        let (hinted, _) = client.send_request(get(), true).unwrap();
        let plain = Request::get("http://a/plain").body(()).unwrap();
        let (plain, _) = client.send_request(plain, true).unwrap();
        assert_eq!(statuses(plain).await, [200]);
        assert_eq!(statuses(hinted).await, [103, 102, 200]);
    });
}

#[test]
fn a_client_that_asks_gets_100_when_its_body_is_wanted() {
    run(async {
        let wanted = Rc::new(Notify::new());
        let wants = wanted.clone();
        let service = move |request: Request<IncomingBody>, _: &Connection| {
            let wants = wants.clone();
            async move {
                if request.uri().path() == "/refused" {
                    return Ok(Response::builder().status(503).body(Full::default()).unwrap());
                }
                wants.notified().await;
                Ok(Response::new(Full::from(request.into_body().collect().await.unwrap().to_bytes())))
            }
        };
        let (mut client, _served) = start(service).await;
        let ask = |path: &str| {
            Request::post(format!("http://a{path}")).header("expect", "100-continue").body(()).unwrap()
        };
        let (response, _body) = client.send_request(ask("/refused"), false).unwrap();
        assert_eq!(statuses(response).await, [503]);
        let (mut response, mut body) = client.send_request(ask("/"), false).unwrap();
        let interim = poll_fn(|cx| response.poll_informational(cx));
        assert!(
            tokio::time::timeout(Duration::from_secs(1), interim).await.is_err(),
            "100 before it is wanted"
        );
        wanted.notify_one();
        let interim = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
        assert_eq!(interim.status(), 100);
        body.send_data(Bytes::from("body"), true).unwrap();
        assert_eq!(response.await.unwrap().into_body().data().await.unwrap().unwrap(), "body");
    });
}

/// Taken for the end of the body, a reset (hyper does so with NO_ERROR) would make a part of an upload the
/// whole.
#[test]
fn a_body_that_its_client_breaks_off_is_no_whole_body() {
    for reason in [Reason::CANCEL, Reason::NO_ERROR, Reason::INTERNAL_ERROR] {
        run(async {
            let (ended, seen) = (Rc::new(Notify::new()), Rc::new(RefCell::new(None)));
            let (ends, sees) = (ended.clone(), seen.clone());
            let service = move |request: Request<IncomingBody>, _: &Connection| {
                let (ends, sees) = (ends.clone(), sees.clone());
                // Not in the stream's own task, which ends with the reset.
                spawn_local(async move {
                    sees.replace(Some(request.into_body().collect().await.map(|body| body.to_bytes())));
                    ends.notify_one();
                });
                pending::<Result<Response<Full<Bytes>>, Infallible>>()
            };
            let (mut client, _served) = start(service).await;
            let post = Request::post("http://a/").body(()).unwrap();
            let (_response, mut body) = client.send_request(post, false).unwrap();
            body.send_data(Bytes::from("a part"), false).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            body.send_reset(reason);
            ended.notified().await;
            assert!(matches!(seen.take(), Some(Err(_))), "{reason}");
        });
    }
}

#[test]
fn a_reset_drops_the_request_and_a_cut_resets_the_stream_alone() {
    run(async {
        let (dropped, cut) = (Rc::new(Notify::new()), Rc::new(RefCell::new(None)));
        let (drops, cuts) = (dropped.clone(), cut.clone());
        struct NotifyOnDrop(Rc<Notify>);
        impl Drop for NotifyOnDrop {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let service = move |request: Request<IncomingBody>, connection: &Connection| {
            let held = NotifyOnDrop(drops.clone());
            cuts.replace(connection.stream_cut());
            async move {
                if request.uri().path() == "/" {
                    pending::<()>().await;
                }
                drop(held);
                Ok(Response::new(Full::from("answer")))
            }
        };
        let (mut client, _served) = start(service).await;
        let (response, mut stream) = client.send_request(get(), true).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.send_reset(Reason::CANCEL);
        dropped.notified().await;
        drop(response);
        let (response, _) = client.send_request(get(), true).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        cut.take().expect("a stream").cut();
        dropped.notified().await;
        assert_eq!(response.await.unwrap_err().reason(), Some(Reason::CANCEL));
        let other = Request::get("http://a/other").body(()).unwrap();
        let (response, _) = client.send_request(other, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
    });
}

/// Sent on as the upgrade that HTTP/1.1 has for it, such a head would promise an upstream content that never
/// comes: the beginning of the next request on its connection.
#[test]
fn a_tunnel_with_a_length_is_refused_before_it_is_a_request() {
    run(async {
        let service = |_: Request<IncomingBody>, _: &Connection| {
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::from("answer"))))
        };
        let (mut client, served) = start(service).await;
        let (response, _) = client.send_request(get(), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
        let connect = |lengths: &[&str]| {
            let request =
                Request::connect("http://a/").extension(h2::ext::Protocol::from_static("websocket"));
            let with = |request: http::request::Builder, length| request.header("content-length", length);
            lengths.iter().copied().fold(request, with).body(()).unwrap()
        };
        for lengths in [&["60"][..], &["0", "60"], &["+0"]] {
            let (response, _stream) = client.send_request(connect(lengths), false).unwrap();
            assert_eq!(response.await.unwrap_err().reason(), Some(Reason::PROTOCOL_ERROR), "{lengths:?}");
        }
        let (response, _stream) = client.send_request(connect(&["0"]), false).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
        drop(client);
        assert_eq!(served.await.unwrap().requests, 2);
    });
}

/// A body larger than all windows, with trailers.
#[test]
fn a_body_comes_at_the_pace_of_its_reader_and_its_trailers_behind_it() {
    run(async {
        let asked = Rc::new(Cell::new(0));
        let asks = asked.clone();
        let service = move |_: Request<IncomingBody>, _: &Connection| {
            std::future::ready(Ok(Response::new(Parts(asks.clone()))))
        };
        let (mut client, _served) = start(service).await;
        let (response, _) = client.send_request(get(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let ahead = asked.get();
        assert!(ahead * PART < 1 << 20, "{ahead} of {PARTS} parts were read for a client that takes none");
        let mut bytes = 0;
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            bytes += data.len();
            body.flow_control().release_capacity(data.len()).unwrap();
        }
        assert_eq!(bytes, PART * PARTS);
        assert_eq!(body.trailers().await.unwrap().unwrap()["x-sum"], "1");
    });
}

const PART: usize = 40_000;
const PARTS: usize = 100;

/// A body that counts its parts.
struct Parts(Rc<Cell<usize>>);

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.replace(self.0.get() + 1);
        Poll::Ready(match part {
            ..PARTS => Some(Ok(Frame::data(Bytes::from(vec![7; PART])))),
            PARTS => {
                let sum = (HeaderName::from_static("x-sum"), HeaderValue::from_static("1"));
                Some(Ok(Frame::trailers(HeaderMap::from_iter([sum]))))
            }
            _ => None,
        })
    }
}

#[test]
fn a_client_that_is_silent_is_pinged_and_one_that_does_not_answer_is_gone() {
    run(async {
        let service = |_: Request<IncomingBody>, _: &Connection| {
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::from("answer"))))
        };
        // One whose task answers pings stays.
        let (mut client, served) = start(service).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let (response, _) = client.send_request(get(), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
        assert!(!served.is_finished());

        let (client, server_side) = duplex(64 << 10);
        let began = Instant::now();
        let served = spawn_local(async move {
            let server = Server::new(SETTINGS);
            server.serve(server.guard(server_side), None, service, pending()).await
        });
        // Its connection is held and never polled again.
        let (_sender, _connection) = h2::client::handshake(client).await.unwrap();
        let served = served.await.unwrap();
        assert!(matches!(served.end, ConnectionEnd::Failed(_)), "{:?}", served.end);
        let after = began.elapsed();
        assert!(
            after >= SETTINGS.http2_ping_after * 2 && after <= SETTINGS.http2_ping_after * 3,
            "{after:?}"
        );
    });
}
