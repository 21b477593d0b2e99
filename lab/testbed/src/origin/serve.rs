//! Accepting connections and answering requests, all on one thread; the work itself is done elsewhere.

use crate::origin::body::Filler;
use crate::origin::request::{Ask, Defaults};
use crate::origin::workers::Queue;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// After a failed accept (no file descriptor left, usually): long enough not to spin, short enough not to
/// matter.
const PAUSE_AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(10);

type Body = Either<Full<Bytes>, Filler>;

/// Accepts every connection until it is stopped; dropping the runtime then cuts what is open.
pub(crate) async fn serve(
    listener: TcpListener,
    asked: Defaults,
    queue: Arc<Queue>,
    mut stopped: oneshot::Receiver<()>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => return,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve_connection(stream, asked, Arc::clone(&queue)))),
            Err(error) => {
                tracing::debug!(%error, "origin cannot accept");
                tokio::time::sleep(PAUSE_AFTER_FAILED_ACCEPT).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, asked: Defaults, queue: Arc<Queue>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "origin cannot set TCP_NODELAY");
    }
    let service = service_fn(move |request| answer(request, asked, Arc::clone(&queue)));
    let mut builder = hyper::server::conn::http1::Builder::new();
    // A forking server blocked in its work does not see that the client closed its side.
    builder.half_close(true).timer(TokioTimer::new());
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        // A client that left: everyday under overload.
        tracing::debug!(%error, "origin connection ended early");
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Defaults,
    queue: Arc<Queue>,
) -> Result<Response<Body>, Infallible> {
    let ask = asked.read(request.method(), request.uri());
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return Ok(text(StatusCode::BAD_REQUEST, "the request's body ended early\n".to_owned()));
        }
    }
    Ok(match ask {
        Err(why) => text(StatusCode::BAD_REQUEST, why + "\n"),
        Ok(Ask::Health) => text(StatusCode::OK, "ok\n".to_owned()),
        Ok(Ask::Completed) => text(StatusCode::OK, format!("{}\n", queue.completed())),
        Ok(Ask::Employ { workers }) if queue.employ(workers) => {
            text(StatusCode::OK, format!("{workers} work\n"))
        }
        Ok(Ask::Employ { .. }) => {
            text(StatusCode::BAD_REQUEST, "expected /workers/N with N from 1 to those started\n".to_owned())
        }
        Ok(Ask::Cool { requests }) => {
            queue.cool(requests);
            text(StatusCode::OK, format!("{requests} cold\n"))
        }
        Ok(Ask::Work { cost, body_bytes, max_age_s }) => match queue.push(cost).await {
            Ok(()) => {
                let mut response = plain(StatusCode::OK, Either::Right(Filler { left: body_bytes }));
                let says = max_age_s.map(|seconds| HeaderValue::try_from(format!("max-age={seconds}")));
                // Letters and digits are a value.
                if let Some(Ok(says)) = says {
                    response.headers_mut().insert(header::CACHE_CONTROL, says);
                }
                response
            }
            // Only a shutdown drops queued work.
            Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n".to_owned()),
        },
    })
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    plain(status, Either::Left(Full::from(text)))
}

fn plain(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
