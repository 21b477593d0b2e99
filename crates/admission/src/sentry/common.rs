//! Shared state of all gates of one service: one gate for each worker, no lock between them.
//!
//! The limit is on the requests in flight of the service, not of a worker: connections are spread over
//! workers unevenly, and a limit of three cannot be cut into shares. So the count is one atomic number, and
//! so is the number of queued requests of each class. The guaranteed rate of a class is metered once for all
//! gates.
//!
//! A wake-up must not get lost between a gate that gives a place back and one where a request begins to wait:
//! each of them first writes its own word and then reads the other's, in one total order (`SeqCst`), so one
//! of them sees.

use super::hold::{class_of, position_of, queue_of};
use super::plan::ClassPlan;
use super::request::Position;
use super::room::QueueState;
use crate::sync::{AtomicU32, AtomicU64, Ordering::SeqCst};
use alloc::boxed::Box;
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant};

/// Counts of one service, for all its gates.
#[derive(Debug)]
pub struct Common {
    /// Requests that hold a place, and long ones, which hold none.
    in_flight: Line<AtomicU32>,
    long: Line<AtomicU32>,
    /// Queued requests, by class and position.
    held: Line<[[AtomicU32; Position::ALL.len()]; CLASSES]>,
    /// States by which their queues stand, in the same order.
    queue_states: Line<[[QueueState; Position::ALL.len()]; CLASSES]>,
    /// By class, nanoseconds: until when the guaranteed rate is used up.
    guarantees: Line<[AtomicU64; CLASSES]>,
    gates: Box<[Line<AtomicU64>]>,
    /// Load of other gateways at the same origin, where a limit is shared: for measurements, never for
    /// decisions.
    elsewhere: Line<Elsewhere>,
    /// Of virtual requests, nanoseconds: when a place was given back last.
    free_since: Line<AtomicU64>,
    /// Requests that the live policy has at the origin, of those that a candidate is asked about.
    live: Line<AtomicU32>,
    /// Times that evidence met a bound on rows.
    rows_merged: Line<AtomicU64>,
}

/// Requests of other gateways at the same origin, and their part of its knee.
#[derive(Debug, Default)]
struct Elsewhere {
    in_flight: AtomicU32,
    knee_milli: AtomicU64,
}

/// Occupies separate cache lines: gates that write one thing do not slow down those that read another.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// The most important that wait at a gate, and since when: the smaller, the sooner. In the upper 8 bits are
/// the rank and, within it, the position; below is the time in units of 256 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precedence(u64);

impl Precedence {
    pub(super) const NONE: Self = Self(u64::MAX);

    pub(super) fn new(rank: u8, position: Position, since: Instant) -> Self {
        let order = queue_of(rank.into(), position) as u64;
        Self(order << ORDER_SHIFT | since.as_nanos() >> (u64::BITS - ORDER_SHIFT))
    }

    pub(super) fn rank(self) -> u8 {
        class_of(self.order().into()) as u8
    }

    pub(super) fn position(self) -> Position {
        position_of(self.order().into())
    }

    fn order(self) -> u8 {
        (self.0 >> ORDER_SHIFT) as u8
    }

    /// Returns true if this one is more important than the other, or as important and older by more than
    /// `slack`.
    pub(super) fn is_before(self, other: Self, slack: Duration) -> bool {
        let slack = (slack.as_nanos() as u64) >> (u64::BITS - ORDER_SHIFT);
        self.order() < other.order()
            || self.order() == other.order() && self.0.saturating_add(slack) < other.0
    }
}

const ORDER_SHIFT: u32 = 56;

impl Common {
    /// Counts of zero for this many gates.
    #[must_use]
    pub fn new(gates: usize) -> Self {
        Self {
            in_flight: Line::default(),
            long: Line::default(),
            held: Line::default(),
            queue_states: Line::default(),
            guarantees: Line::default(),
            gates: (0..gates).map(|_| Line(AtomicU64::new(Precedence::NONE.0))).collect(),
            elsewhere: Line::default(),
            free_since: Line::default(),
            live: Line::default(),
            rows_merged: Line::default(),
        }
    }

    /// Other gateways have this number of requests at the same origin, and this part of its knee,
    /// thousandths. Both only measure: how many requests share the origin decides how fast each is served.
    pub fn set_elsewhere(&self, in_flight: u32, knee_milli: u64) {
        self.elsewhere.0.in_flight.store(in_flight, SeqCst);
        self.elsewhere.0.knee_milli.store(knee_milli, SeqCst);
    }

    /// Requests at the origin, those of other gateways included as far as known.
    pub(super) fn at_origin(&self) -> u32 {
        self.in_flight().saturating_add(self.elsewhere.0.in_flight.load(SeqCst))
    }

    /// The part of the origin's knee that belongs to other gateways, thousandths.
    pub(super) fn knee_elsewhere_milli(&self) -> u64 {
        self.elsewhere.0.knee_milli.load(SeqCst)
    }

    /// Requests in flight over all gates that hold a place.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.0.load(SeqCst)
    }

    /// Requests in flight over all gates that hold no place.
    #[must_use]
    pub fn long(&self) -> u32 {
        self.long.0.load(SeqCst)
    }

    /// Times that a gate had more pairs of URL class and time than it keeps, and counted the requests of all
    /// classes as one.
    #[must_use]
    pub fn rows_merged(&self) -> u64 {
        self.rows_merged.0.load(SeqCst)
    }

    pub(super) fn count_merged_rows(&self) {
        let _always = self.rows_merged.0.fetch_update(SeqCst, SeqCst, |count| Some(count.saturating_add(1)));
    }

    /// A virtual place is free from now on.
    pub(super) fn set_free_since(&self, now: Instant) {
        self.free_since.0.store(now.as_nanos(), SeqCst);
    }

    /// Since when the virtual place that is taken now was free, at the latest.
    pub(super) fn take_free_since(&self, now: Instant) -> Instant {
        let since = self.free_since.0.fetch_update(SeqCst, SeqCst, |_| Some(now.as_nanos()));
        Instant::from_nanos(since.unwrap_or_default())
    }

    /// Counts one more request of the live policy at the origin; returns their number.
    pub(super) fn add_live(&self) -> u32 {
        let before = self.live.0.fetch_update(SeqCst, SeqCst, |count| Some(count.saturating_add(1)));
        before.unwrap_or_default().saturating_add(1)
    }

    /// The live policy has one fewer at the origin.
    pub(super) fn remove_live(&self) {
        let _none = self.live.0.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
    }

    /// Queued requests of a class, over all gates.
    #[must_use]
    pub fn held(&self, class: usize) -> u32 {
        Position::ALL.into_iter().map(|position| self.held_in(queue_of(class, position))).sum()
    }

    /// Returns true if the queue of a class stands: see `room`. Clients over their share have no such queue.
    #[must_use]
    pub fn stands(&self, class: usize) -> bool {
        let queues = Position::ALL.map(|position| queue_of(class, position));
        queues.into_iter().filter_map(|queue| self.queue_state(queue)).any(QueueState::stands)
    }

    /// Queued requests of a class that have this position in it, over all gates.
    #[must_use]
    pub fn held_at(&self, class: usize, position: Position) -> u32 {
        self.held_in(queue_of(class, position))
    }

    /// Queued requests of one queue, over all gates.
    pub(super) fn held_in(&self, queue: usize) -> u32 {
        self.held_of(queue).map_or(0, |held| held.load(SeqCst))
    }

    fn held_of(&self, queue: usize) -> Option<&AtomicU32> {
        self.held.0.get(class_of(queue))?.get(position_of(queue) as usize)
    }

    /// Takes a place if fewer than `limit` are taken.
    pub(super) fn take(&self, limit: u32) -> bool {
        add_below(&self.in_flight.0, limit)
    }

    /// Gives a place back.
    pub(super) fn give_back(&self) {
        self.in_flight.0.fetch_sub(1, SeqCst);
    }

    /// Counts a request that holds no place if fewer than `limit` are in flight.
    pub(super) fn take_long(&self, limit: u32) -> bool {
        add_below(&self.long.0, limit)
    }

    /// One that holds no place is over.
    pub(super) fn give_back_long(&self) {
        self.long.0.fetch_sub(1, SeqCst);
    }

    /// One that holds a place holds none any more, if fewer than `limit` do.
    pub(super) fn release(&self, limit: u32) -> bool {
        let is_released = self.take_long(limit);
        if is_released {
            self.give_back();
        }
        is_released
    }

    /// Takes a waiting place of a queue if fewer than `bound` are taken, and says how many were.
    pub(super) fn take_hold(&self, queue: usize, bound: u32) -> Option<u32> {
        count_below(self.held_of(queue)?, bound)
    }

    /// State that decides if a queue stands; none for a class beyond the bound.
    pub(super) fn queue_state(&self, queue: usize) -> Option<&QueueState> {
        self.queue_states.0.get(class_of(queue))?.get(position_of(queue) as usize)
    }

    /// One of a queue waits no more.
    pub(super) fn give_back_hold(&self, queue: usize) {
        if let Some(held) = self.held_of(queue) {
            held.fetch_sub(1, SeqCst);
        }
    }

    /// Returns true if one more of the class is within its guaranteed rate, and if so counts it: the generic
    /// cell rate algorithm (ITU-T I.371), a token bucket in one word. A second's worth may come at once, at
    /// least one.
    pub(super) fn is_guaranteed(&self, now: Instant, class: usize, plan: &ClassPlan) -> bool {
        let (Some(meter), Some(spacing)) =
            (self.guarantees.0.get(class), MILLI_NANOS.checked_div(plan.guaranteed_rate.as_milli()))
        else {
            return false;
        };
        let count = |used_until: u64| {
            fits(now, used_until, spacing).then(|| used_until.max(now.as_nanos()).saturating_add(spacing))
        };
        meter.fetch_update(SeqCst, SeqCst, count).is_ok()
    }

    /// Returns true if one more of the class would be within its guaranteed rate; counts nothing.
    #[must_use]
    pub fn is_within_guarantee(&self, now: Instant, class: u8, plan: &ClassPlan) -> bool {
        let meter = self.guarantees.0.get(usize::from(class));
        let spacing = MILLI_NANOS.checked_div(plan.guaranteed_rate.as_milli());
        meter.zip(spacing).is_some_and(|(meter, spacing)| fits(now, meter.load(SeqCst), spacing))
    }

    /// Publishes the precedence of the first request queued at a gate.
    pub(super) fn set_first(&self, gate: usize, first: Precedence) {
        if let Some(waiting) = self.gates.get(gate) {
            waiting.0.store(first.0, SeqCst);
        }
    }

    /// The gate where the first of all that wait elsewhere is, clients over their share only if `is_spare`.
    /// O(gates).
    pub(super) fn first_elsewhere(&self, but: usize, is_spare: bool) -> (usize, Precedence) {
        let all = self.gates.iter().enumerate().filter(|(gate, _)| *gate != but);
        let all = all.map(|(gate, waiting)| (gate, Precedence(waiting.0.load(SeqCst))));
        let all = all.filter(|(_, first)| is_spare || first.position() < Position::OverShare);
        all.min_by_key(|(_, first)| *first).unwrap_or((but, Precedence::NONE))
    }
}

fn add_below(count: &AtomicU32, bound: u32) -> bool {
    count_below(count, bound).is_some()
}

/// Adds one if the count is below the bound; the count before.
fn count_below(count: &AtomicU32, bound: u32) -> Option<u32> {
    count.fetch_update(SeqCst, SeqCst, |count| (count < bound).then_some(count + 1)).ok()
}

/// Returns true if one more fits, the rate being used up until then.
fn fits(now: Instant, used_until: u64, spacing: u64) -> bool {
    used_until.saturating_sub(now.as_nanos()) <= BURST_NANOS.saturating_sub(spacing)
}

/// Nanoseconds in a second, times the thousandths in which rates are held.
const MILLI_NANOS: u64 = 1_000_000_000_000;
const BURST_NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_goes_before_age_and_age_has_some_slack() {
        let at = Instant::from_millis;
        let fair = |rank, since| Precedence::new(rank, Position::Usual, since);
        let (gold, old_gold, bronze) = (fair(0, at(900)), fair(0, at(100)), fair(2, at(50)));
        let slack = Duration::from_millis(10);
        assert!(gold.is_before(bronze, slack) && !bronze.is_before(gold, slack));
        assert!(old_gold.is_before(gold, slack) && !gold.is_before(old_gold, slack));
        assert!(!fair(0, at(895)).is_before(gold, slack));
        assert!(bronze < Precedence::NONE && old_gold < gold && gold < bronze);
        assert_eq!((bronze.rank(), fair(15, Instant::MAX).rank()), (2, 15));
        let over_share = Precedence::new(0, Position::OverShare, at(1));
        let hot = Precedence::new(0, Position::HotSpot, at(5));
        assert!(
            gold.is_before(hot, slack)
                && hot.is_before(over_share, slack)
                && over_share.is_before(bronze, slack)
        );
        assert_eq!((over_share.position(), gold.position()), (Position::OverShare, Position::Usual));
    }

    #[test]
    fn the_first_elsewhere_is_never_oneself() {
        let common = Common::new(3);
        assert_eq!(common.first_elsewhere(0, true).1, Precedence::NONE);
        common.set_first(0, Precedence::new(0, Position::Usual, Instant::ZERO));
        common.set_first(2, Precedence::new(1, Position::Usual, Instant::from_secs(1)));
        assert_eq!((common.first_elsewhere(0, true).0, common.first_elsewhere(1, true).0), (2, 0));
        assert_eq!(Common::new(1).first_elsewhere(0, true), (0, Precedence::NONE));
    }
}
