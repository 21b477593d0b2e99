//! Looks at the gateway's `/status` twenty times a second, from a thread of its own.

use crate::demo::http;
use crate::demo::verdicts::Sighting;
use anyhow::{Context, anyhow};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Places in the status.
const MODE: &str = "/plan/mode";
const CAUSE: &str = "/plan/cause";
/// A rate when everything is limited, a list of one when the demo's only host is; neither when nothing is.
const CEILING: [&str; 2] = ["/plan/limit/rps", "/plan/limit/rps/0"];

/// How exact the demo's delays are.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A status that takes longer is given up; the next look comes soon.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Looks kept: ten minutes of them. A demo is over long before.
const LOOKS_KEPT: usize = 12_000;

/// A watch being kept; ends when dropped.
pub(crate) struct Watch {
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct Seen {
    at: Instant,
    state: State,
}

/// The part of a status that the demo shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) mode: String,
    pub(crate) cause: String,
    pub(crate) ceiling_rps: Option<f64>,
}

impl Watch {
    /// Starts looking.
    ///
    /// # Errors
    /// The first look fails: better told at once than found missing in the report.
    pub(crate) fn start(admin: SocketAddr) -> anyhow::Result<Self> {
        let seen = Arc::new(Mutex::new(vec![look(admin)?]));
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::clone(&seen);
        let keep_watch = move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                // A missed look is no news: the gap shows in the report, the next look fills it.
                if let Ok(state) = look(admin) {
                    let mut seen = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    if seen.len() < LOOKS_KEPT {
                        seen.push(state);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(keep_watch)?;
        Ok(Self { seen, stop: Some(stop), thread: Some(thread) })
    }

    /// What was seen last.
    pub(crate) fn latest(&self) -> Option<State> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.last().map(|seen| seen.state.clone())
    }

    /// Everything seen since `start`, on a clock that is zero then.
    pub(crate) fn finish(mut self, start: Instant) -> Vec<Sighting> {
        self.end();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let sighting = |seen: &Seen| {
            let at = seen.at.checked_duration_since(start)?;
            let State { mode, cause, ceiling_rps } = seen.state.clone();
            Some(Sighting { at, mode, cause, ceiling_rps })
        };
        seen.iter().filter_map(sighting).collect()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends within one look; a panic in it has told its story already.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

fn look(admin: SocketAddr) -> anyhow::Result<Seen> {
    let body = http::get(admin, "/status", ANSWER_WITHIN)
        .with_context(|| format!("the gateway's status at {admin}"))?;
    let state = State::parse(&body)?;
    Ok(Seen { at: Instant::now(), state })
}

impl State {
    fn parse(status: &str) -> anyhow::Result<Self> {
        let status: serde_json::Value =
            serde_json::from_str(status).context("the gateway's status is not JSON")?;
        let text = |path: &str| {
            let value = status.pointer(path).and_then(serde_json::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| anyhow!("the gateway's status has no text at {path}"))
        };
        Ok(Self {
            mode: text(MODE)?,
            cause: text(CAUSE)?,
            ceiling_rps: CEILING.iter().find_map(|path| status.pointer(path)?.as_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    /// Answers every connection with `answers` in turn, the last one for ever after.
    fn admin(answers: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers.iter().chain(std::iter::repeat(answers.last().unwrap())) {
                let Ok((mut connection, _)) = listener.accept() else { return };
                let _ = connection.read(&mut [0; 512]);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        address
    }

    const CALM: &str = concat!(
        "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n",
        r#"{"plan": {"mode": "normal", "cause": "calm", "limit": {"kind": "open"}}}"#
    );
    const ALARM: &str = concat!(
        "HTTP/1.1 200 OK\r\n\r\n",
        r#"{"plan": {"mode": "alarm", "cause": "popular", "limit": {"kind": "hot_spots", "rps": [187.5]}}}"#
    );

    #[test]
    fn a_watch_sees_changes_and_survives_a_look_that_fails() {
        let start = Instant::now();
        let watch = Watch::start(admin(&[CALM, "HTTP/1.1 500 no\r\n\r\n", "rubbish", ALARM])).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while watch.latest().is_none_or(|state| state.mode != "alarm") {
            assert!(Instant::now() < deadline, "the alarm was never seen");
            std::thread::yield_now();
        }
        let sightings = watch.finish(start);
        assert_eq!((sightings[0].mode.as_str(), sightings[0].ceiling_rps), ("normal", None));
        assert_eq!((sightings[1].cause.as_str(), sightings[1].ceiling_rps), ("popular", Some(187.5)));
        assert!(sightings.is_sorted_by_key(|sighting| sighting.at));
    }

    #[test]
    fn what_was_seen_before_the_start_is_left_out() {
        let watch = Watch::start(admin(&[CALM])).unwrap();
        assert_eq!(watch.finish(Instant::now() + Duration::from_secs(60)), []);
    }

    #[test]
    fn a_status_without_the_verdict_is_told_at_once() {
        let check = |answers, wanted: &str| {
            let message = Watch::start(admin(answers)).err().map(|error| format!("{error:#}"));
            assert!(message.as_ref().is_some_and(|text| text.contains(wanted)), "{message:?} lacks {wanted}");
        };
        check(&["HTTP/1.0 200 OK\r\n\r\n{}"], "no text at /plan/mode");
        check(&["HTTP/1.0 200 OK\r\n\r\n<html>"], "not JSON");
        check(&["HTTP/1.0 404 Not Found\r\n\r\n"], "404 Not Found");
        check(&[""], "no end of its head");
    }
}
