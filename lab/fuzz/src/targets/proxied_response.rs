//! Answers of an upstream, through the pool and the server of the gateway, to a client that reads strictly.
//!
//! The client gets one well-formed response for its request, with the body that a strict reader finds in the
//! upstream's bytes, or an error, or a connection that visibly breaks. Its next request on the same
//! connection gets its own answer: nothing that the first response leaves behind is taken for it.
//!
//! The first byte chooses the method.

use super::world::{self, Way};
use crate::reference::{End, Kind, strict};
use std::cell::{OnceCell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

/// Asks for the answer that is known.
const SECOND: &str = "GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const SECOND_BODY: &[u8] = b"the second answer";
const PIPE_BYTES: usize = 1 << 17;
const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];

/// The upstream's answer to the first request.
type Script = Rc<RefCell<Vec<u8>>>;

thread_local! {
    // Never dropped, as the world it lives in.
    static UPSTREAM: OnceCell<ManuallyDrop<(Way, Script)>> = const { OnceCell::new() };
}

pub(crate) fn run(data: &[u8]) {
    let Some((&first, answer)) = data.split_first() else { return };
    let method = METHODS[usize::from(first) % METHODS.len()];
    world::with(|world| world.run(compare(method, answer)));
}

async fn compare(method: &str, answer: &[u8]) {
    let (way, script) = scripted().await;
    *script.borrow_mut() = answer.to_vec();
    let (mut client, server_side) = duplex(PIPE_BYTES);
    let service = world::service(way, Rc::default());
    let server = world::server();
    let served = spawn_local(async move {
        server.serve(server.guard(server_side), None, service, std::future::pending()).await
    });
    let first = format!("{method} /first HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    client
        .write_all([first.as_bytes(), SECOND.as_bytes()].concat().as_slice())
        .await
        .expect("room in the pipe");
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes).await;
    drop(client);
    served.await.expect("the server does not panic");
    check(method, answer, &bytes);
}

fn check(method: &str, answer: &[u8], bytes: &[u8]) {
    let methods = [method.to_owned(), "GET".to_owned()];
    let (responses, end) = strict(bytes, Kind::Responses(&methods));
    let shown = bytes.escape_ascii();
    assert!(!matches!(end, End::Bad(_)), "{end:?} reached the client: {shown}");
    assert!(responses.len() <= 2, "{} answers to two requests: {shown}", responses.len());
    let Some(first) = responses.first() else { return };
    for name in ["transfer-encoding", "content-length"] {
        assert!(first.all(name).count() <= 1, "{shown}");
    }
    if let Some(second) = responses.get(1) {
        assert!(second.status() == 200 && second.body == SECOND_BODY, "not its own answer: {shown}");
    }
    let (given, given_end) = strict(answer, Kind::Responses(&methods));
    let given_final = given.iter().find(|response| response.status() >= 200);
    if let (Some(given), false) = (given_final, matches!(given_end, End::Bad(_)))
        && first.status() == given.status()
        && end == End::Whole
        && first.status() != 502
    {
        assert_eq!(first.body, given.body, "another body: {shown}");
    }
}

async fn scripted() -> (Way, Script) {
    if let Some(known) = UPSTREAM.with(|upstream| upstream.get().map(|known| (**known).clone())) {
        return known;
    }
    let script = Script::default();
    let reader = Rc::clone(&script);
    let way = world::upstream(move |stream| play(stream, Rc::clone(&reader))).await;
    UPSTREAM.with(|upstream| (**upstream.get_or_init(|| ManuallyDrop::new((way, script)))).clone())
}

/// Answers `/first` as the script says and `/second` as it should be; without a length an answer ends with
/// the connection.
async fn play(mut stream: TcpStream, script: Script) {
    let (mut unread, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        unread.extend_from_slice(&buffer[..read]);
        let (requests, end) = strict(&unread, Kind::Requests);
        if end != End::Whole {
            continue;
        }
        unread.clear();
        for request in &requests {
            if request.target() == "/second" {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", SECOND_BODY.len());
                if stream.write_all(&[head.as_bytes(), SECOND_BODY].concat()).await.is_err() {
                    return;
                }
                continue;
            }
            let answer = script.borrow().clone();
            let methods = [request.method().to_owned()];
            let (read, end) = strict(&answer, Kind::Responses(&methods));
            let is_framed = read.last().is_some_and(|last| {
                last.all("content-length").count() + last.all("transfer-encoding").count() > 0
            });
            if stream.write_all(&answer).await.is_err() || end != End::Whole || !is_framed {
                return;
            }
        }
    }
}
