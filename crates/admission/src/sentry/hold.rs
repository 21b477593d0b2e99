//! Requests that wait for room: a bounded queue for each class and position in it, shared
//! fairly among clients, which a request can leave at any time.
//!
//! A slab whose entries are in two lists each, in the order they came: all of their queue, and those of their
//! *lane*. A lane is what a queue is divided into: clients, by hash (or kinds of requests, by service time).
//! To enter and to leave from anywhere is O(1).
//!
//! *Fairness.* Lanes that wait share by cost: the one that has had least service goes next (start-time fair
//! queueing, Goyal, Vin and Cheng 1996: what a lane did not ask for in the past it does not get later).
//! Against deficit round robin: no quantum to set, and one dear request does not let a hundred cheap ones of
//! another client pass in one go. It takes a look at each lane in use, at most [`CLIENT_LANES`]. Clients
//! whose keys fall into one lane share what that lane gets; with n clients waiting one has its own lane with
//! probability (1 − 1/64)ⁿ⁻¹: 0.86 for ten, 0.21 for a hundred. Shares are held in each gate by itself.
//!
//! Memory: about 80 bytes and what the shell keeps for each that waits, grown when needed up to the bound and
//! then kept.

use super::request::Position;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::Instant;
use flashweir_core::limits::CLIENT_LANES;

/// The waiting ones of all queues.
#[derive(Debug)]
pub(super) struct Hold<T> {
    slots: Vec<Slot<T>>,
    bound: u32,
    /// The first slot that is free; each names the next.
    free: u32,
    len: usize,
    queues: Vec<Queue>,
}

/// Name of a request that waits; once that has gone, the ticket finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

/// Number of queues for this number of classes.
pub(super) const fn queues_of(classes: usize) -> usize {
    Position::ALL.len() * classes
}

/// The queue of the requests of a class that have this position.
pub(super) const fn queue_of(class: usize, position: Position) -> usize {
    Position::ALL.len() * class + position as usize
}

/// The class of this queue.
pub(super) const fn class_of(queue: usize) -> usize {
    queue / Position::ALL.len()
}

/// The position of the requests in this queue.
pub(super) const fn position_of(queue: usize) -> Position {
    Position::ALL[queue % Position::ALL.len()]
}

/// Slot of a queued request: its queue, its lane, and the cost of serving it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSlot {
    /// See [`queue_of`].
    pub(super) queue: usize,
    /// Below [`CLIENT_LANES`].
    pub(super) lane: usize,
    pub(super) cost_us: u32,
}

/// A request taken out of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dequeued<T> {
    pub(super) slot: QueueSlot,
    pub(super) since: Instant,
    pub(super) value: T,
}

/// Requests queued in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InLane {
    pub(super) len: u32,
    pub(super) cost_us: u64,
    pub(super) oldest_since: Instant,
}

/// From which end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Oldest,
    Newest,
}

/// Requests of one queue.
#[derive(Debug)]
struct Queue {
    ends: Ends,
    len: u32,
    /// Of the slot at the oldest end: asked for every queue at every decision, and slots are far from each
    /// other in memory.
    oldest_since: Instant,
    lanes: Box<[Lane; CLIENT_LANES]>,
    /// A bit for each lane in which a request waits.
    in_use: u64,
    /// Service that the lane last served had had before.
    turn_us: u64,
    /// The lane with most cost waiting, of equals the last; none while it is to be looked for.
    heaviest: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    ends: Ends,
    len: u32,
    /// Cost of the requests that wait here.
    cost_us: u64,
    /// Service it has had; a lane that did not wait begins with what others have had.
    turn_us: u64,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    queue_slot: QueueSlot,
    since: Instant,
    /// In the queue, and in the lane.
    links: [Links; 2],
    value: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    newest: u32,
}

/// No slot: bounds are far below it.
const NONE: u32 = u32::MAX;
const IN_QUEUE: usize = 0;
const IN_LANE: usize = 1;
const _: () = assert!(CLIENT_LANES == u64::BITS as usize, "one bit for each lane");

impl<T> Hold<T> {
    /// Without any request; at most `bound` wait at once.
    pub(super) fn new(queues: usize, bound: usize) -> Self {
        let bound = u32::try_from(bound).unwrap_or(NONE - 1).min(NONE - 1);
        let queues = (0..queues).map(|_| Queue::new()).collect();
        Self { slots: Vec::new(), bound, free: NONE, len: 0, queues }
    }

    /// Number of queued requests.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of requests in a queue.
    pub(super) fn queue_len(&self, queue: usize) -> u32 {
        self.queues[queue].len
    }

    /// Since when the oldest of a queue has waited.
    pub(super) fn oldest_since(&self, queue: usize) -> Option<Instant> {
        let queue = &self.queues[queue];
        (queue.len > 0).then_some(queue.oldest_since)
    }

    /// Since when the newest of a queue has waited.
    pub(super) fn newest_since(&self, queue: usize) -> Option<Instant> {
        self.slots.get(self.queues[queue].ends.newest as usize).map(|slot| slot.since)
    }

    /// Requests queued in a lane of a queue.
    pub(super) fn lane(&self, queue: usize, lane: usize) -> InLane {
        let lane = &self.queues[queue].lanes[lane];
        let oldest = self.slots.get(lane.ends.oldest as usize);
        InLane {
            len: lane.len,
            cost_us: lane.cost_us,
            oldest_since: oldest.map_or(Instant::MAX, |slot| slot.since),
        }
    }

    /// The lanes of a queue in which a request waits, in their order.
    pub(super) fn lanes_in_use(&self, queue: usize) -> impl Iterator<Item = usize> + use<T> {
        Bits(self.queues[queue].in_use)
    }

    /// The lane of a queue with most cost waiting, of equals the last. O(1), or O([`CLIENT_LANES`]) once
    /// something has left it.
    pub(super) fn heaviest_lane(&mut self, queue: usize) -> Option<usize> {
        let queue = &mut self.queues[queue];
        if queue.in_use == 0 {
            return None;
        }
        Some(*queue.heaviest.get_or_insert_with(|| {
            let heaviest = |one: (usize, u64), (index, lane): (usize, &Lane)| match lane.cost_us >= one.1 {
                true => (index, lane.cost_us),
                false => one,
            };
            queue.lanes.iter().enumerate().fold((0, 0), heaviest).0
        }))
    }

    /// A request waits from now on.
    ///
    /// # Errors
    /// The bound is met: the value comes back.
    pub(super) fn push(&mut self, now: Instant, queue_slot: QueueSlot, value: T) -> Result<Ticket, T> {
        let Some(index) = self.free_slot(now, queue_slot) else { return Err(value) };
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        let ticket = Ticket { slot: index, generation: slot.generation };
        let queue = &mut self.queues[queue_slot.queue];
        let lane = &mut queue.lanes[queue_slot.lane];
        lane.turn_us = if lane.len == 0 { lane.turn_us.max(queue.turn_us) } else { lane.turn_us };
        lane.len += 1;
        lane.cost_us += u64::from(queue_slot.cost_us);
        let own = (lane.cost_us, queue_slot.lane);
        if queue.heaviest.is_some_and(|heaviest| own > (queue.lanes[heaviest].cost_us, heaviest)) {
            queue.heaviest = Some(queue_slot.lane);
        }
        let lane = &mut queue.lanes[queue_slot.lane];
        link(&mut self.slots, &mut lane.ends, IN_LANE, index);
        link(&mut self.slots, &mut queue.ends, IN_QUEUE, index);
        queue.oldest_since = if queue.len == 0 { now } else { queue.oldest_since };
        queue.in_use |= 1 << queue_slot.lane;
        queue.len += 1;
        self.len += 1;
        Ok(ticket)
    }

    /// Takes the next request of a queue: of the lane that has had least service. O([`CLIENT_LANES`]).
    pub(super) fn take_fairly(&mut self, queue: usize, end: End) -> Option<Dequeued<T>> {
        let lane = self.next_lane(queue, end)?;
        let dequeued = self.take_from_lane(queue, lane, end)?;
        let queue = &mut self.queues[queue];
        let lane = &mut queue.lanes[lane];
        queue.turn_us = lane.turn_us;
        lane.turn_us = lane.turn_us.saturating_add(dequeued.slot.cost_us.into());
        Some(dequeued)
    }

    /// Takes the request of a queue that has waited longest.
    pub(super) fn take_oldest(&mut self, queue: usize) -> Option<Dequeued<T>> {
        self.remove(self.queues[queue].ends.oldest)
    }

    /// Takes the request at one end of a lane.
    pub(super) fn take_from_lane(&mut self, queue: usize, lane: usize, end: End) -> Option<Dequeued<T>> {
        self.remove(self.queues[queue].lanes[lane].ends.at(end))
    }

    /// Takes the request with this ticket, if it still waits.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Dequeued<T>> {
        let slot = self.slots.get(ticket.slot as usize)?;
        if slot.generation != ticket.generation {
            return None;
        }
        self.remove(ticket.slot)
    }

    /// Among lanes that have had as much, whose next one has waited longest, or came last.
    fn next_lane(&self, queue: usize, end: End) -> Option<usize> {
        let queue = &self.queues[queue];
        let since = |lane: usize| self.slots[queue.lanes[lane].ends.at(end) as usize].since;
        let is_before = |one: usize, other: usize| match end {
            End::Oldest => since(one) < since(other),
            End::Newest => since(one) > since(other),
        };
        let mut next: Option<(usize, u64)> = None;
        for lane in Bits(queue.in_use) {
            let turn_us = queue.lanes[lane].turn_us;
            let is_next = match next {
                Some((_, least_us)) if turn_us > least_us => false,
                Some((other, least_us)) => turn_us < least_us || is_before(lane, other),
                None => true,
            };
            if is_next {
                next = Some((lane, turn_us));
            }
        }
        next.map(|(lane, _)| lane)
    }

    fn free_slot(&mut self, since: Instant, queue_slot: QueueSlot) -> Option<u32> {
        let index = self.free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.free = slot.links[IN_QUEUE].newer;
            (slot.since, slot.queue_slot) = (since, queue_slot);
            return Some(index);
        }
        // Below the bound, which is below NONE.
        let index = self.slots.len() as u32;
        (index < self.bound).then(|| {
            let links = [Links { older: NONE, newer: NONE }; 2];
            self.slots.push(Slot { generation: 0, queue_slot, since, links, value: None });
            index
        })
    }

    fn remove(&mut self, index: u32) -> Option<Dequeued<T>> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        let (queue_slot, since) = (slot.queue_slot, slot.since);
        let queue = &mut self.queues[queue_slot.queue];
        let lane = &mut queue.lanes[queue_slot.lane];
        unlink(&mut self.slots, &mut lane.ends, IN_LANE, index);
        unlink(&mut self.slots, &mut queue.ends, IN_QUEUE, index);
        if let Some(oldest) = self.slots.get(queue.ends.oldest as usize) {
            queue.oldest_since = oldest.since;
        }
        lane.len -= 1;
        lane.cost_us -= u64::from(queue_slot.cost_us);
        queue.heaviest = queue.heaviest.filter(|&heaviest| heaviest != queue_slot.lane);
        if lane.len == 0 {
            queue.in_use &= !(1 << queue_slot.lane);
        }
        queue.len -= 1;
        self.len -= 1;
        self.slots[index as usize].links[IN_QUEUE].newer = self.free;
        self.free = index;
        Some(Dequeued { slot: queue_slot, since, value })
    }
}

impl Queue {
    fn new() -> Self {
        let lane = Lane { ends: Ends::NONE_WAITS, len: 0, cost_us: 0, turn_us: 0 };
        let lanes = vec![lane; CLIENT_LANES].into_boxed_slice();
        let Ok(lanes) = lanes.try_into() else { unreachable!("as many as asked for") };
        Self {
            ends: Ends::NONE_WAITS,
            len: 0,
            oldest_since: Instant::ZERO,
            lanes,
            in_use: 0,
            turn_us: 0,
            heaviest: None,
        }
    }
}

impl Ends {
    const NONE_WAITS: Self = Self { oldest: NONE, newest: NONE };

    fn at(&self, end: End) -> u32 {
        match end {
            End::Oldest => self.oldest,
            End::Newest => self.newest,
        }
    }
}

/// The bits that are set, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lowest = (self.0 != 0).then_some(self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// Adds a slot at the newest end of a list.
fn link<T>(slots: &mut [Slot<T>], ends: &mut Ends, list: usize, index: u32) {
    slots[index as usize].links[list] = Links { older: ends.newest, newer: NONE };
    match slots.get_mut(ends.newest as usize) {
        Some(before) => before.links[list].newer = index,
        None => ends.oldest = index,
    }
    ends.newest = index;
}

/// Takes a slot out of a list.
fn unlink<T>(slots: &mut [Slot<T>], ends: &mut Ends, list: usize, index: u32) {
    let Links { older, newer } = slots[index as usize].links[list];
    match slots.get_mut(older as usize) {
        Some(older) => older.links[list].newer = newer,
        None => ends.oldest = newer,
    }
    match slots.get_mut(newer as usize) {
        Some(newer) => newer.links[list].older = older,
        None => ends.newest = older,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1);
    const ALONE: QueueSlot = QueueSlot { queue: 0, lane: 3, cost_us: 10 };

    fn values(taken: impl IntoIterator<Item = Option<Dequeued<u64>>>) -> Vec<Option<u64>> {
        taken.into_iter().map(|dequeued| dequeued.map(|dequeued| dequeued.value)).collect()
    }

    #[test]
    fn whoever_leaves_the_middle_of_the_queue_leaves_no_hole() {
        let mut hold = Hold::new(1, 3);
        let tickets: Vec<Ticket> =
            (0..3).map(|n| hold.push(Instant::from_nanos(n), ALONE, n).expect("room")).collect();
        assert_eq!(hold.push(Instant::ZERO, ALONE, 9), Err(9));
        assert_eq!(values([hold.take(tickets[1]), hold.take(tickets[1])]), [Some(1), None]);
        assert!(hold.push(Instant::from_nanos(4), ALONE, 4).is_ok());
        let taken = [End::Oldest, End::Newest, End::Oldest, End::Newest].map(|end| hold.take_fairly(0, end));
        assert_eq!(values(taken), [Some(0), Some(4), Some(2), None]);
        assert_eq!((hold.len(), hold.queue_len(0), hold.oldest_since(0)), (0, 0, None));
        assert_eq!(hold.lane(0, 3), InLane { len: 0, cost_us: 0, oldest_since: Instant::MAX });
    }

    #[test]
    fn lanes_share_by_cost_and_not_by_number() {
        let mut hold = Hold::new(1, 100);
        for n in 0..30 {
            let dear = QueueSlot { queue: 0, lane: 1, cost_us: 30 };
            let cheap = QueueSlot { queue: 0, lane: 2, cost_us: 10 };
            hold.push(Instant::from_nanos(2 * n), dear, 0).expect("room");
            hold.push(Instant::from_nanos(2 * n + 1), cheap, 1).expect("room");
        }
        assert_eq!(hold.heaviest_lane(0), Some(1));
        let cheap: u64 =
            (0..24).filter_map(|_| hold.take_fairly(0, End::Oldest)).map(|dequeued| dequeued.value).sum();
        assert_eq!(cheap, 18, "three cheap ones for each dear one");
    }

    #[test]
    fn who_comes_late_gets_no_more_than_the_others_from_then_on() {
        let mut hold = Hold::new(1, 100);
        let queue_slot = |lane| QueueSlot { queue: 0, lane, cost_us: 10 };
        (0..20).for_each(|n| _ = hold.push(Instant::from_nanos(n), queue_slot(0), 0));
        assert_eq!((0..10).filter_map(|_| hold.take_fairly(0, End::Newest)).count(), 10);
        (0..10).for_each(|n| _ = hold.push(Instant::from_nanos(50 + n), queue_slot(63), 1));
        let late: u64 =
            (0..10).filter_map(|_| hold.take_fairly(0, End::Oldest)).map(|dequeued| dequeued.value).sum();
        assert_eq!(late, 5);
    }

    #[test]
    fn the_heaviest_lane_is_the_last_of_equals_and_none_where_nothing_waits() {
        let mut hold = Hold::new(1, 100);
        assert_eq!(hold.heaviest_lane(0), None);
        let mut push =
            |lane, cost_us| hold.push(NOW, QueueSlot { queue: 0, lane, cost_us }, 0).expect("room");
        let [first, second, _] = [push(2, 20), push(5, 20), push(63, 7)];
        assert_eq!(hold.heaviest_lane(0), Some(5));
        assert!(hold.take(second).is_some());
        assert_eq!(hold.heaviest_lane(0), Some(2));
        assert!(hold.take(first).is_some());
        assert_eq!(hold.heaviest_lane(0), Some(63));
    }
    #[test]
    fn the_heaviest_lane_is_remembered_rightly_whoever_comes_and_goes() {
        let mut rng = flashweir_core::Rng::new(1);
        let mut hold = Hold::new(1, 40);
        for _ in 0..5_000 {
            let queue_slot =
                QueueSlot { queue: 0, lane: rng.below(9) as usize, cost_us: 1 + rng.below(4) as u32 };
            match rng.below(4) {
                0 => _ = hold.take_oldest(0),
                1 => _ = hold.take_from_lane(0, queue_slot.lane, End::Newest),
                _ => _ = hold.push(NOW, queue_slot, 0),
            }
            let lanes = (0..CLIENT_LANES).map(|lane| (hold.lane(0, lane).cost_us, lane));
            let heaviest = lanes.filter(|(cost_us, _)| *cost_us > 0).max().map(|(_, lane)| lane);
            // Asked now and then, so that it is remembered over several changes.
            if rng.below(3) == 0 {
                assert_eq!(hold.heaviest_lane(0), heaviest);
            }
        }
    }
}
