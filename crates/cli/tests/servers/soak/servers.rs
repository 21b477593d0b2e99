//! The servers behind the gateway. Each answers with the number of the request that it read, as the target
//! asks for.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flashweir_testkit::{Connection, Message, Upstream, checksum};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::{oneshot, watch};

use crate::soak::account::{Account, Id};

/// Bytes of a large answer. The kind of answer stands behind the number: `/r/CLIENT/NUMBER/WHAT`.
pub(crate) const LARGE_BYTES: usize = 300_000;
const SLOW: Duration = Duration::from_millis(30);

/// The number in a target, and what is asked for.
pub(crate) fn parse(target: &str) -> Option<(Id, &str)> {
    let mut parts = target.strip_prefix("/r/")?.split('/');
    let (client, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((Id { client, number }, parts.next()?))
}

/// Starts a server of HTTP/1.1 at an address where one may have been before.
pub(crate) fn start_at(address: SocketAddr, account: &Arc<Account>) -> Upstream {
    let account = Arc::clone(account);
    Upstream::start_at(address, move |connection: &mut Connection| {
        while let Some(request) = connection.read_request()
            && answer(connection, &request, &account)
        {}
    })
}

fn answer(connection: &mut Connection, request: &Message, account: &Account) -> bool {
    let target = request.start.split(' ').nth(1).unwrap_or_default();
    let Some((id, what)) = parse(target) else {
        // What is hidden in payloads has other targets.
        account.fault(format!("a server read {:?}", request.start));
        return false;
    };
    account.arrive(id, request.start.starts_with("GET "));
    let announced = request.field("x-checksum").map(str::to_owned);
    if announced.is_some_and(|sum| sum != checksum(&request.body).to_string()) {
        account.fault(format!("{id:?} arrived with another body"));
    }
    let own = format!("X-Id: {}-{}\r\n", id.client, id.number);
    match what {
        "large" => connection.answer(200, &own, vec![b'x'; LARGE_BYTES]),
        "chunks" => connection.send(format!(
            "HTTP/1.1 200 OK\r\n{own}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\n!!!\r\n0\r\nSum: 8\r\n\r\n"
        )),
        "slow" => {
            std::thread::park_timeout(SLOW);
            connection.answer(200, &own, "slow")
        }
        "cut" => {
            connection.send(format!("HTTP/1.1 200 OK\r\n{own}Content-Length: 1000\r\n\r\nonly this"));
            false
        }
        "rubbish" => {
            connection.send("\0rubbish\r\n\r\n");
            false
        }
        "more" => {
            connection.send(format!("HTTP/1.1 200 OK\r\n{own}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Id: 0-0\r\n\r\n"));
            false
        }
        "silent" => {
            connection.reset();
            false
        }
        _ => connection.answer(200, &own, "small"),
    }
}

/// A server of HTTP/2 on its own thread, until it is dropped.
pub(crate) struct Http2Server {
    address: SocketAddr,
    cut: watch::Sender<()>,
    _ends: oneshot::Sender<()>,
}

impl Http2Server {
    pub(crate) fn start(account: &Arc<Account>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("a bound listener");
        let (cut, cuts) = watch::channel(());
        let (ends, ended) = oneshot::channel::<()>();
        let account = Arc::clone(account);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, cuts, account) => {}
                    _ = ended => {}
                }
            });
        });
        Self { address, cut, _ends: ends }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts all its connections; new ones are taken.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(());
    }
}

async fn accept(listener: std::net::TcpListener, cuts: watch::Receiver<()>, account: Arc<Account>) {
    listener.set_nonblocking(true).expect("a socket");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
    while let Ok((stream, _)) = listener.accept().await {
        let (account, mut cuts) = (Arc::clone(&account), cuts.clone());
        cuts.mark_unchanged();
        tokio::spawn(async move {
            let service =
                hyper::service::service_fn(move |request| answer_http2(request, Arc::clone(&account)));
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = connection => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn answer_http2(
    request: Request<Incoming>,
    account: Arc<Account>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (target, is_get) = (request.uri().path().to_owned(), request.method() == Method::GET);
    let Ok(_body) = request.into_body().collect().await else {
        return Ok(Response::new(Full::default()));
    };
    let mut response = Response::new(Full::from("http2"));
    match parse(&target) {
        Some((id, _)) => {
            account.arrive(id, is_get);
            let own = format!("{}-{}", id.client, id.number).parse().expect("a field's value");
            response.headers_mut().insert("x-id", own);
        }
        None => account.fault(format!("a server of HTTP/2 read {target}")),
    }
    Ok(response)
}
