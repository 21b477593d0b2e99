//! A request that waits for its turn.

use super::place::Place;
use super::stage::{Refused, Stage};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Resolves when the request is let in or refused. Dropped before (the client has gone), it leaves the queue at once.
#[derive(Debug)]
pub(crate) struct Wait {
    stage: Rc<Stage>,
    /// Its slot; none once it is over.
    key: Option<usize>,
}

impl Wait {
    pub(super) fn new(stage: Rc<Stage>, key: usize) -> Self {
        Self { stage, key: Some(key) }
    }
}

impl Future for Wait {
    type Output = Result<Place, Refused>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = self.key.and_then(|key| self.stage.outcome(key, cx.waker()));
        match outcome {
            Some(outcome) => {
                self.key = None;
                Poll::Ready(outcome)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.stage.leave(key);
        }
    }
}
