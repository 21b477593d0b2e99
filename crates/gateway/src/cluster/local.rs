//! The local engine: the operator names the gateway that leads, and the others report to it over HTTP. A
//! report is a POST, its answer the newest broadcast, both sealed. There is no election: while the leader is
//! gone each gateway goes on by its last share.

use super::leader::Leader;
use super::message::{Broadcast, MessageError, Report};
use super::received::{count_report, refuse, refuse_report};
use super::{Cluster, REPORT_EVERY, STEP_EVERY};
use crate::shared::Shared;
use bytes::Bytes;
use flashweir_core::limits::{CLUSTER_MESSAGE_BYTES, GATEWAYS};
use flashweir_core::{Duration, Instant};
use flashweir_runtime::unix_millis_now;
use flashweir_telemetry::BroadcastOutcome;
use http::header::HOST;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A leader that has not answered by then is silent; the next report goes over another connection.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Time for the head of a report, and for a connection to stay without one: a gateway reports ten times a
/// second.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// After a failed `accept`, as at the admin listener.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// Path of reports.
const PATH: &str = "/reports";

/// The leader's port, taken.
#[derive(Debug)]
pub(crate) struct LeaderListener(std::net::TcpListener);

impl LeaderListener {
    /// Takes the port.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }
}

/// State that the handlers of reports share.
struct Leading {
    shared: Arc<Shared>,
    cluster: Arc<Cluster>,
    leader: RefCell<Leader>,
}

/// Leads until the future is dropped.
pub(super) async fn lead(shared: Arc<Shared>, cluster: Arc<Cluster>, listener: LeaderListener) {
    let listener = match TcpListener::from_std(listener.0) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("the cluster's listener stopped: {error}"),
    };
    cluster.publish(&shared);
    let leader = new_leader(&shared, &cluster, unix_millis_now());
    let leading = Rc::new(Leading { shared: shared.clone(), cluster: cluster.clone(), leader });
    spawn_local(serve(listener, leading.clone()));
    let mut steps = interval(STEP_EVERY);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut report_at = Instant::ZERO;
    loop {
        steps.tick().await;
        let now = shared.clock.now();
        if now >= report_at {
            report_at = now + REPORT_EVERY;
            leading.report_own(now);
        }
        let is_new = leading.leader.borrow_mut().step(now);
        if is_new {
            let broadcast = leading.leader.borrow().broadcast((0, 0));
            cluster.apply(now, &broadcast);
        }
    }
}

fn new_leader(shared: &Shared, cluster: &Cluster, term: u64) -> RefCell<Leader> {
    let (now, services) = (shared.clock.now(), cluster.planned());
    RefCell::new(Leader::new(now, term, cluster.name.clone(), &services))
}

impl Leading {
    /// This gateway's own report, and what goes with each.
    fn report_own(&self, now: Instant) {
        let Self { shared, cluster, leader } = self;
        cluster.publish(shared);
        if !leader.borrow().leads(&cluster.planned()) {
            self.begin_term(leader.borrow().term() + 1);
        }
        let term = leader.borrow().term();
        let report = Report { term, ..cluster.report(now) };
        let outcome = leader.borrow_mut().observe(now, &report);
        count_report(shared, outcome, &report.name);
        let leader = leader.borrow();
        let gateways = leader.gateways().map(|(name, at)| (name.to_owned(), at));
        cluster.set_leader(true, gateways.collect());
    }

    fn begin_term(&self, term: u64) {
        self.leader.swap(&new_leader(&self.shared, &self.cluster, term));
    }

    /// The answer to a report.
    fn answer(&self, bytes: &[u8]) -> Result<Vec<u8>, MessageError> {
        let report = Report::open(&self.cluster.keys, bytes)?;
        let now = self.shared.clock.now();
        if report.term > self.leader.borrow().term() {
            // This machine's clock was set back: an earlier leader's term was larger. Its word is sealed.
            self.begin_term(report.term.saturating_add(1));
        }
        let outcome = self.leader.borrow_mut().observe(now, &report);
        count_report(&self.shared, outcome, &report.name);
        Ok(self.leader.borrow().broadcast((report.gateway, report.sequence)).seal(&self.cluster.keys))
    }
}

async fn serve(listener: TcpListener, leading: Rc<Leading>) {
    let room = Arc::new(Semaphore::new(GATEWAYS));
    loop {
        // Never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let leading = leading.clone();
                spawn_local(async move {
                    let service = service_fn(|request| answer(request, leading.clone()));
                    let mut http = hyper::server::conn::http1::Builder::new();
                    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
                    let _ = stream.set_nodelay(true);
                    // The other end sees how it ends.
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE_AFTER_FAILURE).await,
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    leading: Rc<Leading>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        Ok(response)
    };
    if request.method() != Method::POST || request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, format!("expected POST {PATH}\n"));
    }
    let body = timeout(HEAD_WITHIN, Limited::new(request.into_body(), CLUSTER_MESSAGE_BYTES).collect()).await;
    let Ok(Ok(body)) = body else {
        return plain(StatusCode::BAD_REQUEST, "the report did not come whole\n".to_owned());
    };
    match leading.answer(&body.to_bytes()) {
        Ok(answer) => Ok(Response::new(Full::from(answer))),
        Err(error) => {
            refuse_report(&leading.shared, &error);
            plain(StatusCode::FORBIDDEN, format!("{error}\n"))
        }
    }
}

/// Reason for a missing answer of the leader.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error("no answer within {ANSWER_WITHIN:?}")]
    Timeout,
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Request(#[from] http::Error),
    #[error("it answered {status}: {text}")]
    Status { status: StatusCode, text: String },
    #[error("its answer cannot be read")]
    Body,
    #[error("its answer: {0}")]
    Message(#[from] MessageError),
    #[error("its answer is to another report")]
    Unasked,
}

/// A connection to the leader.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows the leader at this HOST:PORT until the future is dropped.
pub(super) async fn follow(shared: Arc<Shared>, cluster: Arc<Cluster>, leader: String) {
    let mut connection = None;
    let mut reports = interval(REPORT_EVERY);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        reports.tick().await;
        cluster.publish(&shared);
        let outcome = exchange(&shared, &cluster, &leader, &mut connection).await;
        let counted = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                connection = None;
                let is_forged = matches!(error, FollowError::Message(_) | FollowError::Unasked);
                refuse(&shared, format_args!("no share from the leader: {error}"));
                if is_forged { BroadcastOutcome::Forged } else { BroadcastOutcome::Missing }
            }
        };
        shared.telemetry.control().cluster_broadcasts.increment(counted);
    }
}

/// One report and its answer.
async fn exchange(
    shared: &Shared,
    cluster: &Cluster,
    leader: &str,
    connection: &mut Option<Connection>,
) -> Result<BroadcastOutcome, FollowError> {
    let asked = async {
        if connection.as_ref().is_none_or(|connection| connection.sender.is_closed()) {
            *connection = Some(connect(leader).await?);
        }
        let Some(connection) = connection else { return Err(FollowError::Timeout) };
        let report = cluster.report(shared.clock.now());
        let body = Full::from(report.seal(&cluster.keys));
        let request = Request::post(PATH).header(HOST, leader).body(body)?;
        let response = connection.sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), CLUSTER_MESSAGE_BYTES).collect().await;
        let body = body.map_err(|_| FollowError::Body)?.to_bytes();
        if !status.is_success() {
            // A line of the leader's, for the log.
            let text = String::from_utf8_lossy(&body[..body.len().min(TEXT_BYTES)]).trim().to_owned();
            return Err(FollowError::Status { status, text });
        }
        let broadcast = Broadcast::open(&cluster.keys, &body)?;
        if broadcast.answers != (report.gateway, report.sequence) {
            return Err(FollowError::Unasked);
        }
        Ok(cluster.apply(shared.clock.now(), &broadcast))
    };
    timeout(ANSWER_WITHIN, asked).await.unwrap_or(Err(FollowError::Timeout))
}

/// Of a leader's words, what is logged.
const TEXT_BYTES: usize = 200;

async fn connect(leader: &str) -> Result<Connection, FollowError> {
    let stream = TcpStream::connect(leader).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let task = spawn_local(async move {
        // Its end shows at the next report.
        let _ = connection.await;
    });
    Ok(Connection { sender, task })
}
