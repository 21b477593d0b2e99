//! Reads once a second and answers `/load`.

use crate::meter::{LoadReport, Meter};
use crate::source::{MeasuredScope, Source, SourceError};
use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use flashweir_core::{Duration, Instant};
use flashweir_runtime::{AdminListener, ReadyFile, outlive_user_signals};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;

/// Between two readings: a verdict changes no faster, and a reading costs a fraction of a millisecond.
const READ_EVERY: Duration = Duration::from_secs(1);
/// ORCA's field for a report in a response.
const ORCA_FIELD: HeaderName = HeaderName::from_static("endpoint-load-metrics");

/// Settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// Address at which it answers.
    pub listen: SocketAddr,
    /// Names with a dot it may be asked for by.
    pub hosts: Vec<String>,
    /// Scope that it measures.
    pub scope: MeasuredScope,
    /// Port of the service.
    pub port: Option<u16>,
    /// The file that says where it answers, once it does.
    pub ready_file: Option<ReadyFile>,
}

/// Reason for which an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The target is not there.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The runtime or a signal handler cannot be started.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl AgentError {
    /// Returns whether another try with the same arguments fails again.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

/// The last report, or why there is none.
type Latest = Arc<Mutex<Result<LoadReport, String>>>;

/// Reports until SIGTERM or SIGINT.
///
/// # Errors
/// [`AgentError`] when it cannot begin. A target that goes away later is answered as 503, and looked for
/// again.
pub fn run(settings: &AgentSettings) -> Result<(), AgentError> {
    let source = Source::open(settings.scope.clone(), settings.port)?;
    let listener =
        AdminListener::bind(settings.listen).map_err(|error| AgentError::Listen(settings.listen, error))?;
    let address = listener.address()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        outlive_user_signals()?;
        let latest: Latest = Arc::new(Mutex::new(Err("the first second is not over yet".to_owned())));
        let routes = Router::new().route("/load", get(load)).with_state(latest.clone());
        if let Some(file) = &settings.ready_file {
            file.write(&[("listen", &[address])])?;
        }
        // A caller that does not read it is served all the same.
        let _ = writeln!(std::io::stdout(), "agent on http://{address}");
        tokio::select! {
            () = listener.serve(routes, settings.hosts.clone()) => {}
            () = read_on(source, settings, &latest) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

/// Reads at each interval; a target that is gone is opened again when it is back.
async fn read_on(source: Source, settings: &AgentSettings, latest: &Latest) {
    let began = tokio::time::Instant::now();
    let mut ticks = tokio::time::interval(READ_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut source, mut meter) = (Some(source), Meter::default());
    loop {
        ticks.tick().await;
        let now = Instant::from_duration(began.elapsed());
        let Some(open) = &mut source else {
            source = Source::open(settings.scope.clone(), settings.port).ok();
            continue;
        };
        match open.read() {
            Ok(reading) => {
                if let Some(report) = meter.report(now, reading) {
                    publish(latest, Ok(report));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "nothing to report; the target is looked for each second");
                publish(latest, Err(error.to_string()));
                (source, meter) = (None, Meter::default());
            }
        }
    }
}

fn publish(latest: &Latest, report: Result<LoadReport, String>) {
    // Replaced whole: a panic elsewhere leaves nothing half-written.
    *latest.lock().unwrap_or_else(PoisonError::into_inner) = report;
}

/// The report as JSON, with ORCA's fields in the body and as a header field.
async fn load(State(latest): State<Latest>) -> Response {
    let latest = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let fresh = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match latest {
        Ok(report) => {
            let orca = serde_json::to_string(&report.orca).ok();
            let field = orca.and_then(|orca| HeaderValue::try_from(format!("JSON {orca}")).ok());
            let mut response = ([fresh], Json(report)).into_response();
            response.headers_mut().extend(field.map(|field| (ORCA_FIELD, field)));
            response
        }
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, [fresh], format!("{why}\n")).into_response(),
    }
}
