//! The events that are still to come, in one total order.

use flashweir_core::{Instant, limits};

/// Events by time, and by the order in which they were scheduled where times are equal.
///
/// There is no cancel. An owner whose deadline may change keeps it beside the queue (or a generation in the
/// event) and ignores an event that no longer fits: that costs one comparison where it happens, while a table
/// of cancelled events costs a look-up for every event of every owner. An owner that only ever moves a
/// deadline later, as a retransmission timer does, keeps its one pending event and schedules again when that
/// comes too early.
///
/// `schedule` and `pop` cost O(log n), about 20 to 40 ns while n stays below a few thousand; the memory is
/// 16 bytes and one `E` for each event, kept for reuse. Keep `E` within 16 bytes.
#[derive(Debug)]
pub struct Queue<E> {
    heap: Vec<Entry<E>>,
    now: Instant,
    scheduled: u64,
    bound: usize,
}

/// The time in the upper half, the sequence number in the lower: one comparison orders both.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    key: u128,
    event: E,
}

/// An event could not be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// More events wait than the bound allows: the scenario is too large, or something schedules without end.
    #[error("more than {bound} events wait to happen: the scenario is too large for this bound")]
    Full {
        /// Events allowed to wait.
        bound: usize,
    },
}

impl<E: Copy> Queue<E> {
    /// An empty queue at time zero that holds [`limits::SIM_EVENTS`] at most.
    #[must_use]
    pub fn new() -> Self {
        Self::with_bound(limits::SIM_EVENTS)
    }

    /// An empty queue at time zero that holds `bound` events at most.
    #[must_use]
    pub fn with_bound(bound: usize) -> Self {
        Self { heap: Vec::new(), now: Instant::ZERO, scheduled: 0, bound }
    }

    /// The time of the event that was popped last.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns true if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|entry| time_of(entry.key))
    }

    /// Lets `event` happen at `at`, after everything already scheduled for that time.
    ///
    /// # Errors
    /// [`QueueError::Full`] when the bound is met.
    ///
    /// # Panics
    /// If `at` has passed: an owner that computes a time before now has a wrong model, and no result would be
    /// worth having.
    pub fn schedule(&mut self, at: Instant, event: E) -> Result<(), QueueError> {
        assert!(at >= self.now, "an event was scheduled for {at:?}, before now ({:?})", self.now);
        if self.heap.len() >= self.bound {
            return Err(QueueError::Full { bound: self.bound });
        }
        let key = (u128::from(at.as_nanos()) << 64) | u128::from(self.scheduled);
        self.scheduled += 1;
        self.heap.push(Entry { key, event });
        self.sift_up(self.heap.len() - 1);
        Ok(())
    }

    /// The next event, at its time, which becomes now.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let last = self.heap.pop()?;
        let first = match self.heap.first_mut() {
            Some(root) => core::mem::replace(root, last),
            None => last,
        };
        self.sift_down();
        let at = time_of(first.key);
        // Holds because `schedule` refuses the past and the heap gives the smallest key.
        assert!(at >= self.now, "time ran backwards from {:?} to {at:?}", self.now);
        self.now = at;
        Some((at, first.event))
    }

    fn sift_up(&mut self, mut index: usize) {
        let moving = self.heap[index];
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent].key < moving.key {
                break;
            }
            self.heap[index] = self.heap[parent];
            index = parent;
        }
        self.heap[index] = moving;
    }

    /// Fills the root's place with the earliest child, level by level, and then lets what was put there rise
    /// from the bottom: it came from the bottom, so it seldom rises, and the way down needs no comparison
    /// with it.
    fn sift_down(&mut self) {
        let heap = &mut self.heap[..];
        let Some(&moving) = heap.first() else { return };
        let mut index = 0;
        loop {
            let first_child = index * CHILDREN + 1;
            let earliest = match heap.get(first_child..first_child + CHILDREN) {
                Some([a, b, c, d]) => {
                    let left = usize::from(b.key < a.key);
                    let right = 2 + usize::from(d.key < c.key);
                    let (left_key, right_key) = (a.key.min(b.key), c.key.min(d.key));
                    first_child + if right_key < left_key { right } else { left }
                }
                _ => match (first_child..heap.len()).min_by_key(|&child| heap[child].key) {
                    Some(child) => child,
                    None => break,
                },
            };
            heap[index] = heap[earliest];
            index = earliest;
        }
        heap[index] = moving;
        self.sift_up(index);
    }
}

impl<E: Copy> Default for Queue<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// Four: half the depth of a binary heap for two more comparisons on each level, and siblings share cache
/// lines.
const CHILDREN: usize = 4;

fn time_of(key: u128) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    #[test]
    fn orders_by_time_and_then_by_turn() {
        let mut queue = Queue::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.schedule(Instant::from_nanos(at), event).unwrap();
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "bdeac");
    }

    /// Goal: the heap is a heap. Method: compare with a stable sort over random mixtures of pushes and pops.
    #[test]
    fn agrees_with_a_sorted_list() {
        let mut rng = Rng::new(1);
        let mut queue = Queue::new();
        let mut list: Vec<(Instant, u32)> = Vec::new();
        for event in 0..20_000u32 {
            let at = queue.now() + flashweir_core::Duration::from_nanos(rng.below(50));
            queue.schedule(at, event).unwrap();
            let place = list.partition_point(|&(other, _)| other <= at);
            list.insert(place, (at, event));
            while rng.below(2) == 0 && !list.is_empty() {
                assert_eq!(queue.pop(), Some(list.remove(0)));
            }
            assert_eq!(queue.len(), list.len());
        }
    }

    #[test]
    fn refuses_more_than_its_bound() {
        let mut queue = Queue::with_bound(1);
        queue.schedule(Instant::ZERO, ()).unwrap();
        assert_eq!(queue.schedule(Instant::ZERO, ()), Err(QueueError::Full { bound: 1 }));
    }

    #[test]
    #[should_panic(expected = "before now")]
    fn refuses_the_past() {
        let mut queue = Queue::new();
        queue.schedule(Instant::from_nanos(2), ()).unwrap();
        queue.pop();
        let _ = queue.schedule(Instant::from_nanos(1), ());
    }
}
