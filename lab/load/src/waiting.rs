//! People who think, or wait to try again: each wakes at a separate moment.

use crate::alarm::Alarm;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// The waiting people of one thread.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Maximum number of people that wait.
    most: usize,
    room: Mutex<Room>,
}

#[derive(Debug, Default)]
struct Room {
    people: BinaryHeap<Reverse<Sleeper>>,
    /// All waiting people are sent home, and so are later ones.
    closed: bool,
    /// Orders people who wake at the same moment: first come, first woken.
    seats: u64,
}

#[derive(Debug)]
struct Sleeper {
    wakes_at: Instant,
    seat: u64,
    bell: oneshot::Sender<()>,
}

/// Reason why a person did not wait until their moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWaited {
    /// The run ends.
    Closed,
    /// The maximum number of people wait already.
    Full,
}

impl Waiting {
    /// At most `most` people wait.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, room: Mutex::default() }
    }

    /// Waits until the moment; `alarm` is what the thread's own loop waits on.
    pub(crate) async fn until(&self, wakes_at: Instant, alarm: &Alarm) -> Result<(), NotWaited> {
        let (bell, rings) = oneshot::channel();
        {
            let mut room = self.room();
            if room.closed {
                return Err(NotWaited::Closed);
            }
            if room.people.len() >= self.most {
                return Err(NotWaited::Full);
            }
            room.seats += 1;
            let seat = room.seats;
            room.people.push(Reverse(Sleeper { wakes_at, seat, bell }));
        }
        // The loop looks at the next moment itself when it wakes; a timer that cannot be set makes it wake
        // late.
        let _ = alarm.bring_forward(wakes_at);
        rings.await.map_err(|_| NotWaited::Closed)
    }

    /// Wakes all people whose moment has come and returns the next moment.
    pub(crate) fn wake(&self, now: Instant) -> Option<Instant> {
        let mut room = self.room();
        while let Some(Reverse(next)) = room.people.peek() {
            if next.wakes_at > now {
                return Some(next.wakes_at);
            }
            if let Some(Reverse(sleeper)) = room.people.pop() {
                // A person whose task is gone needs no waking.
                let _ = sleeper.bell.send(());
            }
        }
        None
    }

    /// Sends all waiting people home.
    pub(crate) fn close(&self) {
        let mut room = self.room();
        room.closed = true;
        room.people.clear();
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.wakes_at, self.seat).cmp(&(other.wakes_at, other.seat))
    }
}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Sleeper {}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_order::woken_in_order;
    use std::time::Duration;

    mod futures_order {
        use super::*;
        use std::sync::Arc;

        /// Three people come in this order and are woken at these moments.
        pub(super) async fn woken_in_order(moments: [u64; 3]) -> Vec<usize> {
            let waiting = Arc::new(Waiting::new(3));
            let alarm = Arc::new(Alarm::new().unwrap());
            let started = Instant::now();
            let order = Arc::new(Mutex::new(Vec::new()));
            let tasks = moments.map(|at| started + Duration::from_secs(at));
            let mut joins = Vec::new();
            for (person, at) in tasks.into_iter().enumerate() {
                let (waiting, alarm, order) = (waiting.clone(), alarm.clone(), order.clone());
                joins.push(tokio::spawn(async move {
                    waiting.until(at, &alarm).await.unwrap();
                    order.lock().unwrap().push(person);
                }));
                tokio::task::yield_now().await;
            }
            assert_eq!(waiting.wake(started), tasks.iter().min().copied());
            for second in 1..=9 {
                waiting.wake(started + Duration::from_secs(second));
                tokio::task::yield_now().await;
            }
            for join in joins {
                join.await.unwrap();
            }
            Arc::into_inner(order).unwrap().into_inner().unwrap()
        }
    }

    #[tokio::test]
    async fn people_wake_at_their_moments() {
        assert_eq!(woken_in_order([7, 2, 4]).await, [1, 2, 0]);
        assert_eq!(woken_in_order([3, 3, 3]).await, [0, 1, 2]);
    }

    #[tokio::test]
    async fn closing_sends_everybody_home() {
        let waiting = Waiting::new(1);
        let alarm = Alarm::new().unwrap();
        let hour = Instant::now() + Duration::from_secs(3600);
        let (waited, ()) = tokio::join!(waiting.until(hour, &alarm), async { waiting.close() });
        assert_eq!(waited, Err(NotWaited::Closed));
        assert_eq!(waiting.until(hour, &alarm).await, Err(NotWaited::Closed));
        assert_eq!(waiting.wake(hour), None);
    }
}
