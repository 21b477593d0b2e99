//! HTTP/1.1: an idle connection or a new one, one exchange on it, and back to the idle ones.

use super::answer::Answer;
use super::counts::count;
use super::dial::Dialler;
use super::exchange::{Ended, Exchange};
use super::idle::Idle;
use super::request::Prepared;
use super::stream::Stream;
use crate::ErrorKind;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// The HTTP/1 connections of one thread.
pub(super) struct Http1 {
    keep: bool,
    idle: Mutex<Idle>,
    /// Bound on connections, if there is one.
    bound: Option<Bound>,
}

/// Bound on connections, idle ones included. People wait for a turn in the order in which they came.
struct Bound {
    most: usize,
    turns: Semaphore,
}

impl Http1 {
    pub(super) fn new(keep: bool, connections_most: Option<usize>) -> Self {
        let bound = connections_most.map(|most| {
            let most = most.clamp(1, Semaphore::MAX_PERMITS);
            Bound { most, turns: Semaphore::new(most) }
        });
        Self { keep, idle: Mutex::default(), bound }
    }

    /// One try. An idle connection that the server closes without a byte of an answer is replaced, once, by a
    /// new one, if asking twice does no harm: the server may have closed it before it saw the request.
    pub(super) async fn ask(
        &self,
        dialler: &Dialler,
        source: Option<IpAddr>,
        prepared: &Prepared,
        path: &str,
        sent: impl FnOnce(),
    ) -> Result<Answer, ErrorKind> {
        let _turn = match &self.bound {
            // Never closed, so this only waits.
            Some(bound) => bound.turns.acquire().await.ok(),
            None => None,
        };
        let mut sent = Some(sent);
        let mut idle = if self.keep { self.idle().take(source) } else { None };
        loop {
            let reused = idle.is_some();
            let mut stream = match idle.take() {
                Some(stream) => {
                    count(&dialler.counts().reused);
                    stream
                }
                // Boxed: most requests need no new connection, and their futures are to be small.
                None => Box::pin(self.open(dialler, source)).await?,
            };
            let mut exchange = Exchange::new(&mut stream, prepared, path, self.keep, &mut sent);
            match poll_fn(|cx| exchange.poll(cx)).await {
                Ended::Answered { answer, reusable } => {
                    if reusable {
                        self.idle().put(source, stream);
                    }
                    return Ok(answer);
                }
                Ended::Unanswered if reused && prepared.is_safe() => {}
                Ended::Unanswered => return Err(ErrorKind::Closed),
                Ended::Broken(kind) => return Err(kind),
            }
        }
    }

    async fn open(&self, dialler: &Dialler, source: Option<IpAddr>) -> Result<Stream, ErrorKind> {
        if let Some(bound) = &self.bound {
            // Every person with a turn, the caller among them, has or opens at most one connection.
            let in_use = bound.most - bound.turns.available_permits();
            let mut idle = self.idle();
            while idle.count() > 0 && in_use + idle.count() > bound.most {
                idle.close_one();
            }
        }
        dialler.open(source).await
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        // Only this transport's own thread locks it, so it is never contended; never held across an await.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
