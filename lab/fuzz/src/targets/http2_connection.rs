//! Frames of HTTP/2 through the server that the gateway runs: the connection ends when its client does, and
//! every head that comes out of it is judged as `http2_head` judges heads.

use super::{http2_head, world};
use bytes::Bytes;
use flashweir_http::guarded::Protocol;
use flashweir_http::serve::{Connection, IncomingBody};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use std::convert::Infallible;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::task::spawn_local;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// More than any input makes the server say before its client reads.
const PIPE_BYTES: usize = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    world::with(|world| world.run(talk(data)));
}

async fn talk(data: &[u8]) {
    let (mut client, server_side) = duplex(PIPE_BYTES);
    let served = spawn_local(async move {
        let server = world::server();
        let service = |request: Request<IncomingBody>, _: &Connection| answer(request);
        server.serve(server.guard(server_side), Some(Protocol::Http2), service, std::future::pending()).await
    });
    let bytes = [PREFACE, SETTINGS, data].concat();
    // The server may be gone before it has read everything.
    let _ = client.write_all(&bytes).await;
    let _ = client.shutdown().await;
    let mut answers = Vec::new();
    let _ = client.read_to_end(&mut answers).await;
    drop(client);
    let served = served.await.expect("the server does not panic");
    assert_eq!(served.violation, None, "the rules of HTTP/1 are not asked about frames");
}

async fn answer(request: Request<IncomingBody>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    http2_head::check(head);
    let _ = body.collect().await;
    Ok(Response::new(Empty::new()))
}
