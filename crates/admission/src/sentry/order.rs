//! Which of those that wait in a queue is next.

use super::plan::ClassPlan;
use flashweir_core::Instant;

/// Which is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The oldest of the client that has had least service.
    Fair,
    /// The oldest of all.
    OldestFirst,
    /// The newest of the client that has had least service.
    NewestFirst,
}

impl Order {
    /// Once a queue is so old that the request at its head will hardly be answered in time, those that came last are served in time
    /// instead; but what is left of a burst, a queue that is short again, is served in the order in which it came before any of it is
    /// late. (By turns of clients, one with two requests would wait until no client with one comes any more.)
    pub(super) fn of(now: Instant, oldest_since: Option<Instant>, waiting: u32, class: &ClassPlan) -> Self {
        let is_old = oldest_since.is_some_and(|since| now.saturating_since(since) > class.newest_first_after);
        match is_old {
            false => Self::Fair,
            true if waiting < class.oldest_first_below => Self::OldestFirst,
            true => Self::NewestFirst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Policy, SentryPlanner};
    use flashweir_core::Duration;

    #[test]
    fn an_old_queue_is_served_from_its_newest_end_while_it_is_long() {
        let planner = SentryPlanner::new(Policy::single(Duration::from_secs(1)).into());
        let newest_first_after = Duration::from_millis(500);
        let class = ClassPlan { newest_first_after, oldest_first_below: 10, ..planner.current().classes[0] };
        let order = |age_ms: u64, waiting| {
            Order::of(
                Instant::from_millis(1_000),
                Some(Instant::from_millis(1_000 - age_ms)),
                waiting,
                &class,
            )
        };
        assert_eq!([order(400, 50), order(400, 3)], [Order::Fair; 2]);
        assert_eq!([order(600, 10), order(600, 9)], [Order::NewestFirst, Order::OldestFirst]);
        assert_eq!(Order::of(Instant::from_millis(1_000), None, 0, &class), Order::Fair);
    }
}
