//! One node: asked before a request is sent, informed of what came of it.

use crate::client::fields::{Fields, quota_of_trailers};
use crate::client::keys::{HmacKey, Keys};
use crate::client::log::Log;
use flashweir_admission::gapping::{Reason, Released};
use flashweir_core::{Instant, Rng};
use flashweir_feedback::caller::{
    Answer, Arrival, CallerRefusal, Endpoint, EndpointSettings, FeedbackError, Report,
};
use http::{HeaderMap, StatusCode};
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep_until;

/// The two names and how the node is treated.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Name of this caller. Both ends know it: it is part of what the node signs.
    pub sender: String,
    /// Name of the node, for its signature.
    pub node: String,
    /// Its name in the log and in refusals: the node's name, and its address where several servers have one
    /// name.
    pub label: String,
    /// Spacing, queue, quota.
    pub endpoint: EndpointSettings,
}

/// A handle to one node's state; clones share it. Costs a lock that is held for some hundred nanoseconds.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sender: String,
    /// Context for which responses are signed.
    context: String,
    label: String,
    state: Mutex<State>,
    /// The limit changed: requests that wait reckon again when they may go.
    changed: Notify,
    in_flight: AtomicUsize,
    origin: tokio::time::Instant,
}

#[derive(Debug)]
struct State {
    endpoint: Endpoint<Waiter, HmacKey>,
    log: Log,
}

/// The end of a request that waits; none for one that was sure to go at once.
type Waiter = Option<oneshot::Sender<Result<(), CallerRefusal>>>;

/// Leave to send one request. Say what came of it; a pass that is dropped says nothing.
#[derive(Debug)]
#[must_use = "say what came of the request"]
pub struct Pass(Node);

impl NodeSettings {
    /// With defaults.
    #[must_use]
    pub fn new(sender: &str, node: &str) -> Self {
        let (sender, node, label) = (sender.to_owned(), node.to_owned(), node.to_owned());
        Self { sender, node, label, endpoint: EndpointSettings::default() }
    }
}

impl Node {
    /// A node of which nothing is known yet. Without keys, only answers of the node itself may be shown to
    /// it.
    #[must_use]
    pub fn new(settings: NodeSettings, keys: Keys) -> Self {
        let NodeSettings { sender, node, label, endpoint } = settings;
        let random = Rng::new(RandomState::new().hash_one(&label));
        let context = format!("{sender}>{node}");
        let endpoint = Endpoint::new(endpoint, keys.ring(), context.as_bytes(), random);
        Self(Arc::new(Inner {
            sender,
            context,
            label,
            state: Mutex::new(State { endpoint, log: Log::default() }),
            changed: Notify::new(),
            in_flight: AtomicUsize::new(0),
            origin: tokio::time::Instant::now(),
        }))
    }

    /// Name of this caller: the value of [`SENDER`](crate::client::SENDER) in each request.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.0.sender
    }

    /// Its name in the log and in refusals.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Waits until a request of this rank may go, a short time at most and no longer than its deadline.
    /// Dropping the future gives up.
    ///
    /// # Errors
    /// [`CallerRefusal`]: nothing was sent, and nothing should be.
    pub async fn admit(
        &self,
        rank: u8,
        is_continued: bool,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<Pass, CallerRefusal> {
        let too_late_at = deadline.map_or(Instant::MAX, |deadline| {
            Instant::from_duration(deadline.saturating_duration_since(self.0.origin))
        });
        let mut verdict = {
            let mut state = self.lock();
            let now = self.now();
            let may_wait = !is_continued && !state.endpoint.is_open(now, rank);
            if may_wait {
                state.endpoint.withdraw(has_given_up);
            }
            let (waiter, verdict) = may_wait.then(oneshot::channel).unzip();
            let arrival = state.endpoint.arrive_before(now, rank, is_continued, too_late_at, waiter);
            self.note(&mut state, now);
            match (arrival, verdict) {
                (Arrival::Send(_), _) => return Ok(self.pass()),
                (Arrival::Refuse(_, refusal), _) => return Err(refusal),
                (Arrival::Queued(displaced), verdict) => {
                    reply(displaced, Err(CallerRefusal::Limit(Reason::NoRoom)));
                    // One that was open cannot have been queued; were it, refusing it would be right.
                    verdict.ok_or(CallerRefusal::Limit(Reason::NoRoom))?
                }
            }
        };
        loop {
            let changed = self.0.changed.notified();
            let wake = self.next_wake();
            tokio::select! {
                biased;
                // The sender of a waiter is dropped only with the node's state, which `self` keeps.
                verdict = &mut verdict => return verdict.unwrap_or(Err(CallerRefusal::Limit(Reason::NoRoom))).map(|()| self.pass()),
                () = changed => {}
                () = async { match wake { Some(wake) => sleep_until(wake).await, None => pending().await } } => {}
            }
            self.release();
        }
    }

    /// Returns whether a request of this rank would be sent at once.
    #[must_use]
    pub fn is_open(&self, rank: u8) -> bool {
        self.lock().endpoint.is_open(self.now(), rank)
    }

    /// Returns whether the node is silent and the next request goes as a trial.
    #[must_use]
    pub fn is_trial_due(&self) -> bool {
        self.lock().endpoint.is_trial_due(self.now())
    }

    /// Requests that are on their way to the node.
    #[must_use]
    pub fn load(&self) -> usize {
        self.0.in_flight.load(Relaxed)
    }

    /// Feedback that came in a datagram, signed for `address`: the context is that of responses, `@` and the
    /// address by which this caller knows the node, so that one server's message is no other's.
    ///
    /// # Errors
    /// [`FeedbackError`], counted and logged; without keys, every message.
    pub fn hear(&self, value: &[u8], address: SocketAddr) -> Result<(), FeedbackError> {
        let context = format!("{}@{address}", self.0.context);
        let mut state = self.lock();
        let now = self.now();
        let heard = state.endpoint.hear(now, value, context.as_bytes());
        self.finish(&mut state, now, heard.as_ref().err().copied());
        heard.map(drop)
    }

    /// The trailers of an answer came: a gRPC answer with messages says there that a quota is spent. Obeyed
    /// as in the head, where [`EndpointSettings::obeys_quota`] is set.
    pub fn hear_trailers(&self, trailers: &HeaderMap) {
        let Some(quota) = quota_of_trailers(trailers) else { return };
        let mut state = self.lock();
        let now = self.now();
        state.endpoint.hear_quota(now, quota);
        self.finish(&mut state, now, None);
    }

    /// Other keys from now on.
    pub fn set_keys(&self, keys: &Keys) {
        self.lock().endpoint.set_keys(keys.ring());
    }

    /// A snapshot for status pages and metrics. Logs a limit that ended meanwhile.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut state = self.lock();
        let now = self.now();
        let report = state.endpoint.report(now);
        self.note(&mut state, now);
        report
    }

    fn pass(&self) -> Pass {
        self.0.in_flight.fetch_add(1, Relaxed);
        Pass(self.clone())
    }

    fn answered(&self, answer: &Answer<'_>) {
        let mut state = self.lock();
        let now = self.now();
        let taken = state.endpoint.answered(now, answer);
        self.finish(&mut state, now, taken.err());
    }

    fn unanswered(&self) {
        let mut state = self.lock();
        let now = self.now();
        state.endpoint.unanswered(now);
        self.finish(&mut state, now, None);
    }

    fn finish(&self, state: &mut State, now: Instant, error: Option<FeedbackError>) {
        if let Some(error) = error {
            state.log.bad_feedback(now, &self.0.label, error);
        }
        self.note(state, now);
        release(&mut state.endpoint, now);
        self.0.changed.notify_waiters();
    }

    fn release(&self) {
        let mut state = self.lock();
        let now = self.now();
        release(&mut state.endpoint, now);
        self.note(&mut state, now);
    }

    fn next_wake(&self) -> Option<tokio::time::Instant> {
        let wake = self.lock().endpoint.next_wake(self.now())?;
        Some(self.0.origin + wake.saturating_since(Instant::ZERO))
    }

    fn note(&self, state: &mut State, now: Instant) {
        if state.log.is_news(state.endpoint.condition()) {
            let report = state.endpoint.report(now);
            state.log.condition(now, &self.0.label, &report);
        }
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.0.origin.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each method leaves counts and a queue that are right after every statement.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// The head of an answer came, with any status.
    pub fn answered(self, status: StatusCode, headers: &HeaderMap) {
        self.0.answered(&Fields::new(status, headers).answer());
    }

    /// No answer came: no connection, a reset before the response, or nothing in time.
    pub fn unanswered(self) {
        self.0.unanswered();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.0.in_flight.fetch_sub(1, Relaxed);
    }
}

fn release(endpoint: &mut Endpoint<Waiter, HmacKey>, now: Instant) {
    endpoint.withdraw(has_given_up);
    while let Some(released) = endpoint.next(now) {
        match released {
            Released::Send(waiter) => reply(Some(waiter), Ok(())),
            Released::Refuse(waiter) => reply(Some(waiter), Err(CallerRefusal::Limit(Reason::TooLate))),
        }
    }
}

fn has_given_up(waiter: &Waiter) -> bool {
    waiter.as_ref().is_some_and(oneshot::Sender::is_closed)
}

/// A request that gave up meanwhile needs no reply.
fn reply(waiter: Option<Waiter>, verdict: Result<(), CallerRefusal>) {
    if let Some(waiter) = waiter.flatten() {
        let _ = waiter.send(verdict);
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
