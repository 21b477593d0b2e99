//! Requests that an HTTP/2 upstream has not begun, by its own words (RFC 9113 §8.7), and those of which it
//! says nothing.

use crate::guarded::Protocol;
use crate::tests::sockets::support::{RawUpstream, RequestBody, run, settings};
use crate::upstream::{SendCounts, UpstreamErrorKind, UpstreamSettings, UpstreamShared, Upstreams};
use flashweir_core::Rng;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Either, Empty, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;
/// `:status: 200`, by the static table.
const STATUS_200: &[u8] = &[0x88];
const REFUSED_STREAM: u32 = 7;

async fn send(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &id.to_be_bytes()].concat();
    // The other side may have closed: the test looks at its reaction.
    let _ = stream.write_all(&[&head, payload].concat()).await;
}

/// The next frame: kind, flags, stream.
async fn frame(stream: &mut TcpStream) -> Option<(u8, u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
}

async fn refuse(stream: &mut TcpStream, id: u32) {
    send(stream, RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes()).await;
}

async fn go_away(stream: &mut TcpStream, last: u32) {
    send(stream, GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat()).await;
}

/// Reaction of the first connection to its second request; everything else is answered with 200.
#[derive(Clone, Copy, Debug)]
enum Second {
    Refused,
    /// GOAWAY that names this stream as the last one, then the end.
    GoAway(u32),
    Close,
    /// 200 with this number of fields.
    Fields(usize),
}

async fn upstream(second: Second) -> RawUpstream {
    RawUpstream::start(move |connection, mut stream| async move {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        send(&mut stream, SETTINGS, 0, 0, &[]).await;
        while let Some((kind, flags, id)) = frame(&mut stream).await {
            match (kind, connection, id) {
                (SETTINGS, ..) if flags & ACK == 0 => send(&mut stream, SETTINGS, ACK, 0, &[]).await,
                (HEADERS, 0, 3) => match second {
                    Second::Refused => refuse(&mut stream, id).await,
                    Second::Close => return,
                    Second::Fields(count) => {
                        // Literals without indexing (RFC 7541 §6.2.2), `a: b` each.
                        let head = [STATUS_200, &[0, 1, b'a', 1, b'b'].repeat(count)].concat();
                        send(&mut stream, HEADERS, END_STREAM_AND_HEADERS, id, &head).await;
                    }
                    Second::GoAway(last) => {
                        go_away(&mut stream, last).await;
                        return stream.shutdown().await.unwrap();
                    }
                },
                (HEADERS, ..) => send(&mut stream, HEADERS, END_STREAM_AND_HEADERS, id, STATUS_200).await,
                _ => {}
            }
        }
    })
    .await
}

fn copy(body: &RequestBody) -> Option<RequestBody> {
    Some(match body {
        Either::Left(_) => Either::Left(Empty::new()),
        Either::Right(whole) => Either::Right(whole.clone()),
    })
}

/// Status of the second request on the first connection, connections, and what was counted.
async fn ask_twice(
    method: Method,
    second: Second,
) -> (Result<StatusCode, UpstreamErrorKind>, usize, Option<SendCounts>) {
    let server = upstream(second).await;
    let settings = UpstreamSettings { protocol: Protocol::Http2, ..settings(&[server.address]) };
    let upstreams = Upstreams::new(UpstreamShared::new(settings).unwrap(), Rng::new(1)).repeating(copy);
    let request = |method| {
        let body: RequestBody = if method == Method::GET {
            Either::Left(Empty::new())
        } else {
            Either::Right(Full::from("order"))
        };
        Request::builder().method(method).uri("/").header("host", "shop.example").body(body).unwrap()
    };
    upstreams.send(request(Method::GET)).await.unwrap().into_body().collect().await.unwrap();
    let status = upstreams.send(request(method)).await.map(|response| response.status());
    (status.map_err(|error| error.kind), server.accepted.get(), upstreams.take_counts())
}

const REPEATED: Option<SendCounts> = Some(SendCounts { retries: 0, repeats: 1, over_budget: 0 });

/// RFC 9113 §8.7: requests that have not been processed may be sent again, with any method.
#[test]
fn what_the_upstream_has_not_begun_is_sent_once_more() {
    for method in [Method::GET, Method::POST] {
        run(async {
            let refused = ask_twice(method.clone(), Second::Refused).await;
            assert_eq!(refused, (Ok(StatusCode::OK), 1, REPEATED), "the connection is good");
            let gone = ask_twice(method.clone(), Second::GoAway(1)).await;
            assert_eq!(gone, (Ok(StatusCode::OK), 2, REPEATED), "{method}: on a new connection");
        });
    }
}

/// RFC 9113 §6.8: streams up to the last one named may have been processed.
#[test]
fn what_the_upstream_may_have_begun_is_sent_once_more_only_if_idempotent() {
    for second in [Second::GoAway(3), Second::Close] {
        run(async {
            let get = ask_twice(Method::GET, second).await;
            assert_eq!(get, (Ok(StatusCode::OK), 2, REPEATED), "{second:?}");
            let post = ask_twice(Method::POST, second).await;
            assert_eq!(post, (Err(UpstreamErrorKind::Reset), 1, None), "{second:?}");
        });
    }
}

#[test]
fn a_response_has_no_more_fields_than_are_allowed() {
    run(async {
        let (most, ..) = ask_twice(Method::GET, Second::Fields(256)).await;
        assert_eq!(most, Ok(StatusCode::OK));
        let more = ask_twice(Method::GET, Second::Fields(257)).await;
        assert_eq!(more, (Err(UpstreamErrorKind::HeadTooLarge), 1, None));
    });
}
