//! Looks at the gateway's `/status` twenty times a second, from a separate thread.

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
const CAUSE: &str = "/verdict/cause";
/// Requests at the origin at most, and those that wait; the demo has one service.
const LIMIT: &str = "/services/0/sentry/plan/limit";
const WAITING: &str = "/services/0/sentry/waiting";
/// Requests refused so far.
const SHED: &str = "/requests/shed";

/// Interval between two looks: the resolution of the demo's delays.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A status that takes longer is given up; the next look comes soon.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Looks kept: ten minutes of them. A demo is over long before.
const LOOKS_KEPT: usize = 12_000;

/// A watch being kept; ends when dropped.
pub(crate) struct Watch {
    seen: Arc<Mutex<Vec<StateAt>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct StateAt {
    at: Instant,
    state: State,
}

/// The part of a status that the demo shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// `full` while some are turned away, or the crowd detector's alarm; otherwise `normal`.
    pub(crate) mode: String,
    /// Cause of the load, as the gateway names it.
    pub(crate) cause: String,
    /// Requests at the origin at most.
    pub(crate) limit: Option<u64>,
    /// Requests that wait.
    pub(crate) waiting: u64,
    /// Requests refused so far.
    pub(crate) shed: u64,
}

impl Watch {
    /// Starts looking.
    ///
    /// # Errors
    /// The first look fails: better reported at once than found missing in the report.
    pub(crate) fn start(admin: SocketAddr) -> anyhow::Result<Self> {
        let seen = Arc::new(Mutex::new(vec![look(admin, None)?]));
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::clone(&seen);
        let keep_watch = move || {
            let mut shed = None;
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                // A missed look is no news: the gap shows in the report, the next look fills it.
                if let Ok(state) = look(admin, shed) {
                    shed = Some(state.state.shed);
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

    /// The last look.
    pub(crate) fn latest(&self) -> Option<State> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.last().map(|seen| seen.state.clone())
    }

    /// Everything seen since `start`, on a clock that is zero then.
    pub(crate) fn finish(mut self, start: Instant) -> Vec<Sighting> {
        self.end();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let sighting = |seen: &StateAt| {
            let at = seen.at.checked_duration_since(start)?;
            let State { mode, cause, limit, .. } = seen.state.clone();
            Some(Sighting { at, mode, cause, limit })
        };
        seen.iter().filter_map(sighting).collect()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends within one look; a panic in it has been reported already.
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// `shed_before`: how many had been refused at the look before, if there was one.
fn look(admin: SocketAddr, shed_before: Option<u64>) -> anyhow::Result<StateAt> {
    let body = http::get(admin, "/status", ANSWER_WITHIN)
        .with_context(|| format!("the gateway's status at {admin}"))?;
    let state = State::parse(&body, shed_before)?;
    Ok(StateAt { at: Instant::now(), state })
}

impl State {
    fn parse(status: &str, shed_before: Option<u64>) -> anyhow::Result<Self> {
        let status: serde_json::Value =
            serde_json::from_str(status).context("the gateway's status is not JSON")?;
        let text = |path: &str| {
            let value = status.pointer(path).and_then(serde_json::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| anyhow!("the gateway's status has no text at {path}"))
        };
        let count = |path: &str| status.pointer(path).and_then(serde_json::Value::as_u64);
        let (mode, shed) = (text(MODE)?, count(SHED).unwrap_or(0));
        let is_full = mode == "normal" && shed_before.is_some_and(|before| shed > before);
        Ok(Self {
            mode: if is_full { "full".to_owned() } else { mode },
            cause: text(CAUSE)?,
            limit: count(LIMIT),
            waiting: count(WAITING).unwrap_or(0),
            shed,
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
        r#"{"plan": {"mode": "normal"}, "verdict": {"cause": "calm"}, "requests": {"shed": 3}}"#
    );
    const FULL: &str = concat!(
        "HTTP/1.1 200 OK\r\n\r\n",
        r#"{"plan": {"mode": "normal"}, "verdict": {"cause": "surge_ok"}, "requests": {"shed": 4}, "#,
        r#""services": [{"sentry": {"waiting": 7, "plan": {"limit": 2}}}]}"#
    );
    const ALARM: &str =
        concat!("HTTP/1.1 200 OK\r\n\r\n", r#"{"plan": {"mode": "alarm"}, "verdict": {"cause": "popular"}}"#);

    #[test]
    fn a_watch_sees_changes_and_survives_a_look_that_fails() {
        let start = Instant::now();
        let watch =
            Watch::start(admin(&[CALM, CALM, "HTTP/1.1 500 no\r\n\r\n", "rubbish", FULL, ALARM])).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while watch.latest().is_none_or(|state| state.mode != "alarm") {
            assert!(Instant::now() < deadline, "the alarm was never seen");
            std::thread::yield_now();
        }
        let sightings = watch.finish(start);
        let modes: Vec<_> = sightings.iter().map(|sighting| sighting.mode.as_str()).take(4).collect();
        assert_eq!(modes, ["normal", "normal", "full", "alarm"]);
        assert_eq!((sightings[2].cause.as_str(), sightings[2].limit), ("surge_ok", Some(2)));
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
