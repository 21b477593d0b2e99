//! Spawning where a worker is one thread.

use hyper::rt::Executor;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use tokio::task::AbortHandle;

/// Spawns onto the current `LocalSet`: tasks of one worker never leave its thread, so they need not be `Send`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Ends one HTTP/2 stream of a client while the others of its connection go on. In the extensions of the stream's request.
#[derive(Clone, Debug, Default)]
pub struct StreamCut(Arc<OnceLock<AbortHandle>>);

thread_local! {
    /// The request that the service was called with last: its stream is spawned next.
    static CALLED: RefCell<Option<StreamCut>> = const { RefCell::new(None) };
}

impl StreamCut {
    /// Resets the stream; nothing happens to one that has ended.
    pub fn cut(&self) {
        self.0.get().into_iter().for_each(AbortHandle::abort);
    }

    /// The handle of the stream whose request is being handed to the service.
    pub(super) fn of_call() -> Self {
        let cut = Self::default();
        CALLED.set(Some(cut.clone()));
        cut
    }
}

/// Spawns the streams of clients' HTTP/2 connections. hyper hands each over right after it has called the service for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamExecutor;

impl<F: Future + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, future: F) {
        let task = tokio::task::spawn_local(future);
        if let Some(cut) = CALLED.take() {
            // It is new, so it has none yet.
            let _ = cut.0.set(task.abort_handle());
        }
    }
}
