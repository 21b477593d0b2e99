//! Polls a future only when it has asked for it, however often the task around it is woken.

use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::task::{Context, Poll, Wake, Waker};

pin_project! {
    /// A future that mostly waits beside others that are busy: a poll that it did not ask for costs one load.
    pub(super) struct WhenWoken<F> {
        #[pin]
        future: F,
        // None before the first poll.
        woken: Option<(Arc<Woken>, Waker)>,
    }
}

/// Wish of the future to be polled.
struct Woken {
    is_woken: AtomicBool,
    task: Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.swap(true, AcqRel);
        self.task.wake_by_ref();
    }
}

impl<F> WhenWoken<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future, woken: None }
    }
}

impl<F: Future> Future for WhenWoken<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.woken.as_ref().is_none_or(|(woken, _)| !woken.task.will_wake(cx.waker())) {
            let woken = Arc::new(Woken { is_woken: AtomicBool::new(true), task: cx.waker().clone() });
            *this.woken = Some((Arc::clone(&woken), Waker::from(woken)));
        }
        match this.woken {
            Some((woken, waker)) if woken.is_woken.swap(false, AcqRel) => {
                this.future.poll(&mut Context::from_waker(waker))
            }
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;

    #[test]
    fn it_is_polled_once_until_it_asks_again() {
        let (polls, asked) = (Cell::new(0), Cell::new(None));
        let future = poll_fn(|cx| {
            polls.set(polls.get() + 1);
            asked.set(Some(cx.waker().clone()));
            if polls.get() == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut future = pin!(WhenWoken::new(future));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(future.as_mut().poll(&mut cx).is_pending() && polls.get() == 1);
        }
        asked.take().expect("a waker").wake();
        assert!(future.as_mut().poll(&mut cx).is_ready());
    }
}
