//! An origin that restarts under load: GETs at a fixed rate through each proxy, over connections that are
//! kept, while the origin ends all of its connections, is away for a moment, and comes back.

use crate::page;
use crate::proxies::{Kind, Programs};
use flashweir_testkit::{Client, Connection, Upstream, reserve_address};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CLIENTS: u32 = 10;
/// Between two requests of one client: 500 a second from all.
const EVERY: Duration = Duration::from_millis(20);
const RESTARTS: usize = 5;
const RUNS_FOR: Duration = Duration::from_millis(1_500);
/// The port refuses connections for this long.
const AWAY_FOR: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(3);

/// Outcomes of all requests through one proxy.
#[derive(Debug)]
pub(crate) struct Outcome {
    sent: usize,
    ok: usize,
    refused: usize,
    /// 502, 504, or the client's connection ended.
    failed: usize,
    /// Requests that came to the origin.
    came: usize,
    /// Of a run without a restart, those that were not 200.
    failed_in_calm: usize,
}

#[derive(Default)]
struct Counts {
    sent: AtomicUsize,
    ok: AtomicUsize,
    refused: AtomicUsize,
    failed: AtomicUsize,
    came: AtomicUsize,
}

/// One proxy with and without restarts; an error is the reason why it could not take part.
pub(crate) fn run(programs: &Programs, kind: Kind) -> Result<Outcome, String> {
    let calm = offer(programs, kind, 0)?;
    let counts = offer(programs, kind, RESTARTS)?;
    let Counts { sent, ok, refused, failed, came } = &*counts;
    let [sent, ok, refused, failed, came] =
        [sent, ok, refused, failed, came].map(|count| count.load(Relaxed));
    let failed_in_calm = calm.sent.load(Relaxed) - calm.ok.load(Relaxed);
    Ok(Outcome { sent, ok, refused, failed, came, failed_in_calm })
}

fn offer(programs: &Programs, kind: Kind, restarts: usize) -> Result<Arc<Counts>, String> {
    let address = reserve_address();
    let counts = Arc::new(Counts::default());
    let start = || {
        let counts = counts.clone();
        Upstream::start_at(address, move |connection: &mut Connection| {
            while connection.read_request().is_some() {
                counts.came.fetch_add(1, Relaxed);
                if !connection.answer(200, "", "ok") {
                    return;
                }
            }
        })
    };
    // Not moved into the scope: the last one outlives the clients.
    let mut origin = Some(start());
    let running = programs.start(kind, address)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (counts, is_over, proxy) = (&counts, &is_over, running.http1);
            scope.spawn(move || ask(proxy, counts, is_over, EVERY * client / CLIENTS));
        }
        for _ in 0..restarts {
            std::thread::park_timeout(RUNS_FOR);
            drop(origin.take());
            std::thread::park_timeout(AWAY_FOR);
            origin = Some(start());
        }
        std::thread::park_timeout(RUNS_FOR);
        is_over.store(true, Relaxed);
    });
    Ok(counts)
}

/// One client: a request each 20 ms, or at once where the one before took longer.
fn ask(proxy: SocketAddr, counts: &Counts, is_over: &AtomicBool, first_after: Duration) {
    let mut due = Instant::now() + first_after;
    let mut client: Option<Client> = None;
    while !is_over.load(Relaxed) {
        std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
        due += EVERY;
        let is_kept = client.as_ref().is_some_and(|client| !client.is_closed());
        if !is_kept {
            let mut fresh = Client::connect(proxy);
            fresh.set_patience(PATIENCE);
            client = Some(fresh);
        }
        counts.sent.fetch_add(1, Relaxed);
        let asked = client.as_mut().map(|client| {
            client.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").ok();
            client.try_response()
        });
        let outcome = match asked.and_then(Result::ok).map(|answer| answer.status()) {
            Some(200) => &counts.ok,
            Some(503) => &counts.refused,
            other => {
                if other.is_none() {
                    client = None;
                }
                &counts.failed
            }
        };
        outcome.fetch_add(1, Relaxed);
    }
}

/// A part of the page: a table with a line for each proxy.
pub(crate) fn text(outcomes: &[(Kind, Result<Outcome, String>)]) -> String {
    let mut text = format!(
        "\n## An origin that restarts\n\n{} GETs a second over {CLIENTS} kept connections. The origin is ended {RESTARTS} times, once in {} s; its port refuses connections for {} ms.\n\n\
         | proxy | sent | 200 | 503 | 502, 504 or closed | came to the origin | not 200 without a restart |\n|---|---:|---:|---:|---:|---:|---:|\n",
        Duration::from_secs(1).as_millis() / EVERY.as_millis() * u128::from(CLIENTS),
        RUNS_FOR.as_secs_f64(),
        AWAY_FOR.as_millis()
    );
    for (kind, outcome) in outcomes {
        // Writing to a string cannot fail.
        let _ = match outcome {
            Ok(Outcome { sent, ok, refused, failed, came, failed_in_calm }) => writeln!(
                text,
                "| {} | {sent} | {ok} | {refused} | {failed} | {came} | {failed_in_calm} |",
                kind.name()
            ),
            Err(why) => writeln!(text, "| {} | {} | | | | | |", kind.name(), page::escape(why)),
        };
    }
    text.push_str("\nA request that met the end of the origin and was sent once more came to it twice.\n");
    text
}
