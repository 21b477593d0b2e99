//! The stream of gRPC between a gateway and the one that leads: sealed messages both ways, an answer to each
//! report. Bytes in, bytes out: what they say, and who sealed them, is the gateway's to judge.
//!
//! Bounds: [`GATEWAYS`] connections, two streams of each, [`CLUSTER_MESSAGE_BYTES`] a message, and ten
//! seconds without a report.

use flashweir_core::Duration;
use flashweir_core::limits::{CLUSTER_MESSAGE_BYTES, GATEWAYS};
use flashweir_runtime::{ClusterArrival, ReportRefusal};
use futures::stream::{self, BoxStream, StreamExt as _};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// Of `proto/shares.proto`.
const METHOD: &str = "/flashweir.gateways.v1.Shares/Exchange";
/// A gateway needs one; a second one may begin before the end of the first is known.
const STREAMS: u32 = 2;
/// A connection over which no report comes for this long is closed: a gateway reports ten times a second.
const IDLE: Duration = Duration::from_secs(10);
/// A message, and what protocol buffers add to it.
const MESSAGE_BYTES: usize = CLUSTER_MESSAGE_BYTES + 16;
/// After a failed `accept`.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// A sealed message.
#[derive(Clone, PartialEq, prost::Message)]
struct Sealed {
    #[prost(bytes = "vec", tag = "1")]
    message: Vec<u8>,
}

/// Takes reports on a port until the future is dropped; `arrivals` hears of each, and answers it.
pub async fn serve(listener: TcpListener, arrivals: mpsc::Sender<ClusterArrival>) {
    let room = Arc::new(Semaphore::new(GATEWAYS));
    loop {
        // Never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let arrivals = arrivals.clone();
                tokio::spawn(async move {
                    serve_connection(stream, arrivals).await;
                    drop(place);
                });
            }
            Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, arrivals: mpsc::Sender<ClusterArrival>) {
    let _slower = stream.set_nodelay(true);
    let heard = Arc::new(Notify::new());
    let exchange = Exchange { arrivals, heard: heard.clone() };
    let answer = service_fn(move |request: Request<Incoming>| {
        let exchange = exchange.clone();
        async move {
            if request.uri().path() != METHOD {
                return Ok::<_, Infallible>(Status::unimplemented("no such method").into_http());
            }
            let codec = ProstCodec::<Sealed, Sealed>::default();
            let mut grpc = Grpc::new(codec).max_decoding_message_size(MESSAGE_BYTES);
            Ok(grpc.streaming(exchange, request).await)
        }
    });
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    loop {
        tokio::select! {
            // The other end sees how it ends.
            _ = &mut connection => return,
            is_idle = timeout(IDLE, heard.notified()) => if is_idle.is_err() { return },
        }
    }
}

/// One connection's reports.
#[derive(Clone)]
struct Exchange {
    arrivals: mpsc::Sender<ClusterArrival>,
    heard: Arc<Notify>,
}

impl Exchange {
    async fn answer(&self, sealed: Vec<u8>) -> Result<Sealed, Status> {
        self.heard.notify_one();
        let (answer, answered) = oneshot::channel();
        let stopping = || Status::unavailable("the gateway is stopping");
        self.arrivals.send(ClusterArrival::Report { sealed, answer }).await.map_err(|_| stopping())?;
        match answered.await.map_err(|_| stopping())? {
            Ok(message) => Ok(Sealed { message }),
            Err(ReportRefusal::NotLeading) => Err(Status::unavailable(ReportRefusal::NotLeading.to_string())),
            Err(refusal @ ReportRefusal::Report(_)) => Err(Status::permission_denied(refusal.to_string())),
        }
    }
}

impl StreamingService<Sealed> for Exchange {
    type Response = Sealed;
    type ResponseStream = BoxStream<'static, Result<Sealed, Status>>;
    type Future = std::future::Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Sealed>>) -> Self::Future {
        // An answer that is an error is the last.
        let reports = Some((self.clone(), request.into_inner()));
        let answers = stream::unfold(reports, |reports| async {
            let (exchange, mut reports) = reports?;
            // The other end has closed the stream, or the connection has failed.
            let report = reports.message().await.ok()??;
            match exchange.answer(report.message).await {
                Ok(answer) => Some((Ok(answer), Some((exchange, reports)))),
                Err(status) => Some((Err(status), None)),
            }
        });
        std::future::ready(Ok(tonic::Response::new(answers.boxed())))
    }
}

/// Error of a report without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// There is no connection.
    #[error("{0}")]
    Connection(#[from] std::io::Error),
    /// It ended.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// The other end refuses; its word for the kind, and why.
    #[error("it answered {:?}: {}", .0.code(), .0.message())]
    Status(Box<Status>),
    /// It says no more.
    #[error("the stream has ended")]
    Ended,
}

impl From<Status> for ReportError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// A stream to the gateway that leads.
pub struct ReportStream {
    reports: mpsc::Sender<Sealed>,
    answers: Streaming<Sealed>,
    connection: JoinHandle<()>,
}

impl Drop for ReportStream {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl ReportStream {
    /// Opens a connection and a stream over it.
    ///
    /// # Errors
    /// [`ReportError`]: nothing listens there, or something else does.
    pub async fn open(leader: SocketAddr) -> Result<Self, ReportError> {
        let stream = TcpStream::connect(leader).await?;
        stream.set_nodelay(true)?;
        let http = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (requests, connection) = http.handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(async move {
            // Its end shows at the next report.
            let _ended = connection.await;
        });
        let origin = Uri::builder().scheme("http").authority(leader.to_string()).path_and_query("/").build();
        let origin = origin.map_err(|error| std::io::Error::other(error.to_string()))?;
        let grpc = tonic::client::Grpc::with_origin(Requests(requests), origin);
        let mut grpc = grpc.max_decoding_message_size(MESSAGE_BYTES);
        // An answer is waited for before the next report is sent.
        let (reports, sent) = mpsc::channel(1);
        let sent = stream::unfold(sent, |mut sent| async { sent.recv().await.map(|report| (report, sent)) });
        let codec = ProstCodec::<Sealed, Sealed>::default();
        let opened = async {
            grpc.ready().await?;
            let request = tonic::Request::new(sent);
            Ok(grpc.streaming(request, PathAndQuery::from_static(METHOD), codec).await?.into_inner())
        };
        match opened.await {
            Ok(answers) => Ok(Self { reports, answers, connection }),
            Err(error) => {
                connection.abort();
                Err(error)
            }
        }
    }

    /// Sends a sealed report; the sealed answer. Not to be asked again after an error, or when the future was
    /// dropped.
    ///
    /// # Errors
    /// [`ReportError`]: there is none.
    pub async fn exchange(&mut self, report: Vec<u8>) -> Result<Vec<u8>, ReportError> {
        // Where nothing takes it, the answers say why.
        let _ended = self.reports.send(Sealed { message: report }).await;
        Ok(self.answers.message().await?.ok_or(ReportError::Ended)?.message)
    }
}

/// Requests of one connection, as tonic wants them.
struct Requests(SendRequest<Body>);

impl Service<Request<Body>> for Requests {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tonic::Code;

    /// A leader that answers with the report, reversed; it refuses an empty one, and does not lead for one
    /// that says so.
    async fn leader() -> (SocketAddr, impl Future<Output = ()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (arrivals, mut reports) = mpsc::channel(4);
        let answers = async move {
            while let Some(ClusterArrival::Report { sealed, answer }) = reports.recv().await {
                let answered = match sealed.as_slice() {
                    b"" => Err(ReportRefusal::Report("too short for a tag".to_owned())),
                    b"follower" => Err(ReportRefusal::NotLeading),
                    report => Ok(report.iter().rev().copied().collect()),
                };
                answer.send(answered).expect("who has asked waits");
            }
        };
        let run = async {
            tokio::select! {
                () = serve(listener, arrivals) => {}
                () = answers => {}
            }
        };
        (address, run)
    }

    async fn refused(leader: SocketAddr, report: &[u8]) -> (Code, String) {
        let mut stream = ReportStream::open(leader).await.expect("a stream");
        match stream.exchange(report.to_vec()).await.expect_err("no answer") {
            ReportError::Status(status) => (status.code(), status.message().to_owned()),
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn each_report_has_an_answer_and_a_refusal_says_why() {
        let (address, run) = leader().await;
        let asked = async {
            let mut stream = ReportStream::open(address).await.expect("a stream");
            for report in [b"abc".to_vec(), vec![7; CLUSTER_MESSAGE_BYTES], b"xy".to_vec()] {
                let answer = stream.exchange(report.clone()).await.expect("an answer");
                assert!(answer.iter().rev().eq(&report), "{} bytes", report.len());
            }
            let tag = "too short for a tag".to_owned();
            assert_eq!(refused(address, b"").await, (Code::PermissionDenied, tag));
            let leads = "this gateway does not lead".to_owned();
            assert_eq!(refused(address, b"follower").await, (Code::Unavailable, leads));
            // More than a message may have ends the stream before it is read.
            let mut stream = ReportStream::open(address).await.expect("a stream");
            let long = stream.exchange(vec![7; CLUSTER_MESSAGE_BYTES + 64]).await;
            assert!(long.is_err(), "{} bytes", long.unwrap_or_default().len());
        };
        tokio::select! {
            () = asked => {}
            () = run => panic!("it serves until it is dropped"),
        }
    }

    /// A connection that is no HTTP/2 is closed, and disturbs no other.
    #[tokio::test]
    async fn bytes_that_are_no_stream_are_closed() {
        let (address, run) = leader().await;
        let asked = async {
            for junk in [&b"POST /reports HTTP/1.1\r\nHost: a\r\n\r\n"[..], &[0; 64]] {
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                stream.write_all(junk).await.expect("sent");
                let mut rest = Vec::new();
                // A reset is an end, too.
                let _reset = stream.read_to_end(&mut rest).await;
            }
            let mut stream = ReportStream::open(address).await.expect("a stream");
            assert_eq!(stream.exchange(b"abc".to_vec()).await.expect("an answer"), b"cba");
        };
        tokio::select! {
            () = asked => {}
            () = run => panic!("it serves until it is dropped"),
        }
    }
}
