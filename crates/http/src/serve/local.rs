//! Spawning where a worker is one thread.

use hyper::rt::Executor;

/// Spawns onto the current `LocalSet`: tasks of one worker never leave its thread, so they need not be
/// `Send`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
