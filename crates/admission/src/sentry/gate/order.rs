//! Order of the requests in a queue: which is next, and how long the last one waits.

use super::SentryGate;
use super::arriving::ArrivingRequest;
use crate::sentry::hold::queue_of;
use crate::sentry::plan::{ClassPlan, Decide};
use crate::sentry::request::SentryRequest;
use crate::sentry::room::Room;
use flashweir_core::{Duration, Instant};

/// Order in which the requests of a queue go.
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
    /// Once a queue is so old that the request at its head will hardly be answered in time, those that came
    /// last are served in time instead; but what is left of a burst, a queue that is short again, is served
    /// in the order in which it came before any of it is late. (By turns of clients, one with two requests
    /// would wait until no client with one comes any more.) A queue that stands is served from its newest
    /// end.
    pub(super) fn of(
        now: Instant,
        oldest_since: Option<Instant>,
        waiting: u32,
        class: &ClassPlan,
        room: Room,
    ) -> Self {
        if room.is_standing {
            return Self::NewestFirst;
        }
        let is_old = oldest_since.is_some_and(|since| now.saturating_since(since) > class.newest_first_after);
        match is_old {
            false => Self::Fair,
            true if waiting < class.oldest_first_below => Self::OldestFirst,
            true => Self::NewestFirst,
        }
    }
}

impl<T> SentryGate<T> {
    /// Shortest time that a request which has to wait will do so: half of what the oldest in its queue has
    /// waited here. The other half is for clients with few requests, which overtake those of clients with
    /// many. Zero where the newest goes first, and in batches, whose rounds depend on what else arrives.
    #[must_use]
    pub fn shortest_wait(&self, now: Instant, request: &SentryRequest) -> Duration {
        let ArrivingRequest { request, class, .. } = self.arriving(*request);
        let queue = queue_of(request.class.into(), request.position);
        let is_in_order = !matches!(self.plan.decide, Decide::Batch(_))
            && self.order(now, queue, &class) != Order::NewestFirst;
        let since = self.hold.oldest_since(queue).filter(|_| is_in_order);
        since.map_or(Duration::ZERO, |since| now.saturating_since(since) / OVERTAKING_PART)
    }

    pub(super) fn order(&self, now: Instant, queue: usize, class: &ClassPlan) -> Order {
        let room = self.room(queue, class);
        Order::of(now, self.hold.oldest_since(queue), self.common.held_in(queue), class, room)
    }
}

/// A request is taken to wait for this part (1/n) of what the oldest has waited.
const OVERTAKING_PART: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Policy, SentryPlanner};

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
                Room::of(&class, false),
            )
        };
        assert_eq!([order(400, 50), order(400, 3)], [Order::Fair; 2]);
        assert_eq!([order(600, 10), order(600, 9)], [Order::NewestFirst, Order::OldestFirst]);
        let now = Instant::from_millis(1_000);
        assert_eq!(Order::of(now, None, 0, &class, Room::of(&class, false)), Order::Fair);
        let class = ClassPlan { standing_for: Duration::from_millis(12), ..class };
        assert_eq!(Order::of(now, Some(now), 3, &class, Room::of(&class, true)), Order::NewestFirst);
    }
}
