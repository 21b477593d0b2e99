//! Time limit of the exchanges of one connection, by one timer that is set once for many of them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// Timer of a connection. It is set again only when it goes off before the deadline under way: to set and
/// remove one for each request costs some 600 instructions.
#[derive(Debug, Default)]
pub(super) struct LazyDeadline(Option<Pin<Box<Sleep>>>);

impl LazyDeadline {
    /// Ready once `deadline` is over. Deadlines of one connection come in their order; an earlier one than
    /// the last is noticed late, by the difference at most.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn each_exchange_has_its_whole_time() {
        let mut timer = LazyDeadline::default();
        let begun = Instant::now();
        let second = |count| begun + Duration::from_secs(count);
        let early = poll_fn(|cx| Poll::Ready(timer.poll(cx, second(3)).is_ready())).await;
        assert!(!early);
        tokio::time::advance(Duration::from_secs(2)).await;
        // The timer goes off at 3 s, and is set again.
        poll_fn(|cx| timer.poll(cx, second(5))).await;
        assert_eq!(Instant::now(), second(5));
        poll_fn(|cx| timer.poll(cx, second(9))).await;
        assert_eq!(Instant::now(), second(9));
    }
}
