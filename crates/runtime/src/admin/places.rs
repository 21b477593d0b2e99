//! Bounds the admin connections, and chooses the one to close when there are too many.
//!
//! | a connection that | places | when they are taken |
//! |---|---|---|
//! | has not asked yet, or not again | [`ADMIN_PROBES`](limits::ADMIN_PROBES) | the one that has waited longest is cut |
//! | asks for `/healthz` or `/readyz` | the same | (its answer is sent at once) |
//! | asks for anything else, until the answer is sent | [`ADMIN_CONNECTIONS`](limits::ADMIN_CONNECTIONS) | the answer is 503 |
//!
//! So neither half requests nor slow readers keep a probe out: a client that asks right after connecting is
//! answered.

use axum::Error;
use axum::body::{Body, Bytes};
use flashweir_core::{Duration, limits};
use http_body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The places of one listener.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    /// Connections without a request, the one that has waited longest in front.
    waiting: VecDeque<(u64, Option<AbortHandle>)>,
    /// Requests that are no probes, until their answers are sent.
    asking: usize,
    accepted: u64,
}

/// One connection as its requests see it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    places: Arc<Places>,
    number: u64,
    /// Arrival of the request under way.
    asked: Arc<Mutex<Option<Instant>>>,
}

/// A request under way; dropped when its answer is sent or given up.
#[derive(Debug)]
pub(super) struct Asking {
    connection: Connection,
    is_probe: bool,
    abort: Option<AbortHandle>,
}

impl Places {
    /// Serves a connection in its own task; the one that has waited longest goes if there is no place.
    pub(super) fn admit<F>(self: &Arc<Self>, attend: impl FnOnce(Connection) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let connection = {
            let mut taken = self.lock();
            taken.accepted += 1;
            let connection = Connection::new(self.clone(), taken.accepted);
            taken.wait(connection.number, None);
            connection
        };
        let (number, serving) = (connection.number, attend(connection.clone()));
        let task = tokio::spawn(async move {
            serving.await;
            connection.places.lock().leave(number);
        });
        let mut taken = self.lock();
        // It has not run yet, for this runtime has one thread; if it has, it is gone again.
        if let Some((_, abort)) = taken.waiting.iter_mut().find(|(other, _)| *other == number) {
            *abort = Some(task.abort_handle());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts and a list, right after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn wait(&mut self, number: u64, abort: Option<AbortHandle>) {
        self.waiting.push_back((number, abort));
        if self.waiting.len() > limits::ADMIN_PROBES {
            let longest = self.waiting.pop_front();
            longest.and_then(|(_, abort)| abort).into_iter().for_each(|abort| abort.abort());
        }
    }

    fn leave(&mut self, number: u64) -> Option<AbortHandle> {
        let place = self.waiting.iter().position(|(other, _)| *other == number)?;
        self.waiting.remove(place)?.1
    }
}

impl Connection {
    fn new(places: Arc<Places>, number: u64) -> Self {
        Self { places, number, asked: Arc::default() }
    }

    /// Returns whether the answer to a request has been under way for at least `span`.
    pub(super) fn has_asked_for(&self, span: Duration) -> bool {
        self.asked().is_some_and(|asked| asked.elapsed() >= span)
    }

    fn asked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come; `None` if it is no probe and there is no place for it.
    pub(super) fn begin(&self, is_probe: bool) -> Option<Asking> {
        let mut taken = self.places.lock();
        if !is_probe {
            if taken.asking >= limits::ADMIN_CONNECTIONS {
                return None;
            }
            taken.asking += 1;
        }
        // A probe's answer is a few bytes, so its connection keeps its place and its turn to be cut.
        let abort = if is_probe { None } else { taken.leave(self.number) };
        *self.asked() = Some(Instant::now());
        Some(Asking { connection: self.clone(), is_probe, abort })
    }
}

impl Asking {
    /// The body, with the place held until all of it is sent.
    pub(super) fn until_sent(self, body: Body) -> HeldBody {
        HeldBody { body, _asking: self }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        *self.connection.asked() = None;
        if !self.is_probe {
            let mut taken = self.connection.places.lock();
            taken.asking -= 1;
            taken.wait(self.connection.number, self.abort.take());
        }
    }
}

/// An answer's body that holds its request's place.
#[derive(Debug)]
pub(super) struct HeldBody {
    body: Body,
    _asking: Asking,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(places: &Arc<Places>) -> Connection {
        let mut taken = places.lock();
        taken.accepted += 1;
        let number = taken.accepted;
        taken.wait(number, None);
        drop(taken);
        Connection::new(places.clone(), number)
    }

    #[test]
    fn only_an_answer_under_way_gets_old() {
        let connection = idle(&Arc::new(Places::default()));
        assert!(!connection.has_asked_for(Duration::ZERO));
        let asking = connection.begin(false).expect("a place");
        assert!(
            connection.has_asked_for(Duration::ZERO) && !connection.has_asked_for(Duration::from_secs(60))
        );
        drop(asking);
        assert!(!connection.has_asked_for(Duration::ZERO));
    }

    #[test]
    fn whoever_waited_longest_goes_and_probes_need_no_place() {
        let places = Arc::new(Places::default());
        let asking: Vec<_> =
            (0..limits::ADMIN_CONNECTIONS).map(|_| idle(&places).begin(false).expect("a place")).collect();
        let connection = idle(&places);
        assert!(connection.begin(false).is_none());
        assert!(connection.begin(true).is_some());
        (0..limits::ADMIN_PROBES).for_each(|_| drop(idle(&places)));
        assert_eq!(places.lock().waiting.front().map(|(number, _)| *number), Some(connection.number + 1));
        drop(asking);
        assert_eq!(places.lock().asking, 0);
        assert_eq!(places.lock().waiting.len(), limits::ADMIN_PROBES);
        assert!(connection.begin(false).is_some());
    }
}
