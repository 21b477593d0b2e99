//! Clients that end their half of the connection while they wait for an answer (RFC 9112 §9.6).

use crate::serve::HeadLimits;
use crate::serve::{Connection, IncomingBody, ServeSettings, Served, Server};
use crate::tests::sockets::support::run;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::channel::{Channel, Sender};

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, spawn_local};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A connection whose requests are answered when and how the test says.
struct Scene {
    client: TcpStream,
    held: Rc<Notify>,
    /// One response for each request, with the sender of its body.
    responses: mpsc::UnboundedSender<Response<Channel<Bytes, Infallible>>>,
    served: JoinHandle<Served>,
    break_off: Rc<dyn Fn()>,
}

async fn scene(answers_half_closed: bool) -> Scene {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let server = Server::new(ServeSettings {
        head: HeadLimits { bytes_max: 8_192, fields_max: 100 },
        head_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        http2_streams_max: 1,
        http2_ping_after: Duration::from_secs(5),
    });
    let (responses, waiting) = mpsc::unbounded_channel();
    let waiting = Rc::new(RefCell::new(Some(waiting)));
    let held = Rc::new(Notify::new());
    let mut io = server.guard(accepted);
    if answers_half_closed {
        io = io.answering_half_closed(Rc::clone(&held));
    }
    let handle = io.handle();
    let served = spawn_local(async move {
        let service = move |_: Request<IncomingBody>, _: &Connection| {
            let waiting = Rc::clone(&waiting);
            async move {
                let mut receiver = waiting.take().expect("one request at a time");
                let response = receiver.recv().await.expect("the test answers");
                waiting.replace(Some(receiver));
                Ok::<_, Infallible>(response)
            }
        };
        server.serve(io, None, service, std::future::pending()).await
    });
    Scene { client, held, responses, served, break_off: Rc::new(move || handle.break_off()) }
}

impl Scene {
    fn answer(&self) -> Sender<Bytes, Infallible> {
        let (body, channel) = Channel::new(4);
        self.responses.send(Response::builder().header("date", "today").body(channel).unwrap()).unwrap();
        body
    }
}

/// Everything until the server's end of the connection.
async fn rest(client: &mut TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

const ANSWER: &str =
    "HTTP/1.1 200 OK\r\ndate: today\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

#[test]
fn the_first_byte_comes_at_once_and_the_rest_when_it_is_there() {
    run(async {
        let mut scene = scene(true).await;
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        scene.client.shutdown().await.unwrap();
        assert_eq!(scene.client.read_u8().await.unwrap(), b'H');
        scene.held.notified().await;
        assert!(!scene.served.is_finished());
        let mut body = scene.answer();
        body.send(Frame::data(Bytes::from("ok"))).await.unwrap();
        drop(body);
        assert_eq!(format!("H{}", rest(&mut scene.client).await), ANSWER);
        let served = scene.served.await.unwrap();
        assert!(matches!(served.end, crate::serve::ConnectionEnd::Closed), "{served:?}");
    });
}

/// A byte of the second answer must not fall into the first.
#[test]
fn an_answer_under_way_is_not_touched_and_a_second_request_is_answered_too() {
    run(async {
        let mut scene = scene(true).await;
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        let mut first = scene.answer();
        first.send(Frame::data(Bytes::from("ok"))).await.unwrap();
        let mut begun = vec![0; ANSWER.len() - "0\r\n\r\n".len()];
        scene.client.read_exact(&mut begun).await.unwrap();
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        scene.client.shutdown().await.unwrap();
        // hyper reads ahead while the first answer is under way: the rest of that must come first.
        tokio::task::yield_now().await;
        drop(first);
        let mut second = scene.answer();
        second.send(Frame::data(Bytes::from("ok"))).await.unwrap();
        drop(second);
        let all = String::from_utf8(begun).unwrap() + &rest(&mut scene.client).await;
        assert_eq!(all, [ANSWER, ANSWER].concat());
    });
}

/// A stream that is silent for long would otherwise not notice a reader that has gone.
#[test]
fn a_chunk_begins_with_a_zero_where_a_stream_under_way_is_half_closed() {
    run(async {
        let mut scene = scene(true).await;
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        let mut stream = scene.answer();
        stream.send(Frame::data(Bytes::from("ok"))).await.unwrap();
        let mut begun = vec![0; ANSWER.len() - "0\r\n\r\n".len()];
        scene.client.read_exact(&mut begun).await.unwrap();
        scene.client.shutdown().await.unwrap();
        assert_eq!(scene.client.read_u8().await.unwrap(), b'0');
        stream.send(Frame::data(Bytes::from("more"))).await.unwrap();
        let mut next = [0; "4\r\nmore\r\n".len()];
        scene.client.read_exact(&mut next).await.unwrap();
        assert_eq!(&next, b"4\r\nmore\r\n", "behind the zero");
        drop(stream);
        assert_eq!(rest(&mut scene.client).await, "0\r\n\r\n");
    });
}

/// HTTP/1.0 knows no chunks, and a length is not to be touched.
#[test]
fn nothing_falls_into_an_answer_of_another_kind() {
    for (request, length) in [("GET / HTTP/1.0\r\nHost: a\r\n\r\n", None), (GET, Some(4))] {
        run(async {
            let mut scene = scene(true).await;
            scene.client.write_all(request.as_bytes()).await.unwrap();
            let (mut body, channel) = Channel::new(4);
            let response = Response::builder().header("date", "today");
            let response = match length {
                Some(bytes) => response.header("content-length", bytes),
                None => response,
            };
            scene.responses.send(response.body(channel).unwrap()).unwrap();
            body.send(Frame::data(Bytes::from("ab"))).await.unwrap();
            while scene.client.read_u8().await.unwrap() != b'b' {}
            scene.client.shutdown().await.unwrap();
            scene.held.notified().await;
            body.send(Frame::data(Bytes::from("cd"))).await.unwrap();
            drop(body);
            assert_eq!(rest(&mut scene.client).await, "cd");
        });
    }
}

#[test]
fn a_client_that_has_gone_ends_its_request() {
    run(async {
        let mut scene = scene(true).await;
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        scene.client.shutdown().await.unwrap();
        scene.held.notified().await;
        (scene.break_off)();
        let served = scene.served.await.unwrap();
        assert!(matches!(served.end, crate::serve::ConnectionEnd::Failed(_)), "{served:?}");
    });
}

/// Half a request, or none, is never completed by an end.
#[test]
fn an_end_without_a_whole_request_is_the_end() {
    for bytes in ["", "G", "GET / HTTP/1.1\r\nHost:"] {
        run(async {
            let mut scene = scene(true).await;
            scene.client.write_all(bytes.as_bytes()).await.unwrap();
            scene.client.shutdown().await.unwrap();
            assert!(!rest(&mut scene.client).await.contains("200"), "{bytes}");
            assert!(scene.served.await.is_ok());
        });
    }
}

#[test]
fn where_it_is_off_an_end_is_the_end_of_the_request() {
    run(async {
        let mut scene = scene(false).await;
        scene.client.write_all(GET.as_bytes()).await.unwrap();
        scene.client.shutdown().await.unwrap();
        assert_eq!(rest(&mut scene.client).await, "");
        let served = scene.served.await.unwrap();
        assert!(matches!(served.end, crate::serve::ConnectionEnd::Failed(_)), "{served:?}");
    });
}
