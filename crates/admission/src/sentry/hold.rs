//! Requests that wait for room: a bounded queue out of which anybody can go at once.
//!
//! A slab whose entries are linked in the order they came: to enter, to leave from either end and to leave from the
//! middle are each O(1), without allocation after construction. Which end is next is the gate's decision.

use alloc::vec::Vec;
use flashweir_core::Instant;

/// The waiting ones, oldest to newest.
#[derive(Debug)]
pub struct Hold<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

/// Names one that waits; after it has gone, the ticket finds nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    older: u32,
    newer: u32,
    since: Instant,
    value: Option<T>,
}

/// No slot: bounds are far below it.
const NONE: u32 = u32::MAX;

impl<T> Hold<T> {
    /// Nobody waits, and at most `bound` ever will.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        let bound = u32::try_from(bound).unwrap_or(NONE - 1).min(NONE - 1);
        let slots = (0..bound).map(|_| Slot {
            generation: 0,
            older: NONE,
            newer: NONE,
            since: Instant::ZERO,
            value: None,
        });
        Self { slots: slots.collect(), free: (0..bound).rev().collect(), oldest: NONE, newest: NONE }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// Since when the oldest has waited.
    #[must_use]
    pub fn oldest_since(&self) -> Option<Instant> {
        self.slots.get(self.oldest as usize).map(|slot| slot.since)
    }

    /// Somebody waits from now on.
    ///
    /// # Errors
    /// The bound is met: the value comes back.
    pub fn push(&mut self, now: Instant, value: T) -> Result<Ticket, T> {
        let Some(index) = self.free.pop() else { return Err(value) };
        let newest = self.newest;
        let slot = &mut self.slots[index as usize];
        slot.older = newest;
        slot.newer = NONE;
        slot.since = now;
        slot.value = Some(value);
        let ticket = Ticket { slot: index, generation: slot.generation };
        match self.slots.get_mut(newest as usize) {
            Some(before) => before.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
        Ok(ticket)
    }

    /// Whoever has waited longest.
    pub fn take_oldest(&mut self) -> Option<T> {
        self.remove(self.oldest)
    }

    /// Whoever came last.
    pub fn take_newest(&mut self) -> Option<T> {
        self.remove(self.newest)
    }

    /// Whoever has this ticket, if still waiting.
    pub fn take(&mut self, ticket: Ticket) -> Option<T> {
        let slot = self.slots.get(ticket.slot as usize)?;
        if slot.generation != ticket.generation {
            return None;
        }
        self.remove(ticket.slot)
    }

    fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        let (older, newer) = (slot.older, slot.newer);
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.free.push(index);
        Some(value)
    }
}
