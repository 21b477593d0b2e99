//! Requests that wait for their turn: by rank, then by arrival.

use alloc::collections::VecDeque;
use flashweir_core::Instant;

/// A bounded queue, kept in the order of service.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    bound: usize,
}

#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) rank: u8,
    pub(super) leaves_at: Instant,
    pub(super) kept: T,
}

impl<T> Queue<T> {
    pub(super) fn new(bound: usize) -> Self {
        Self { waiting: VecDeque::new(), bound }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The rank of the request that goes next.
    pub(super) fn first_rank(&self) -> Option<u8> {
        self.waiting.front().map(|waiting| waiting.rank)
    }

    /// Number of requests that go before one of this rank that arrives now.
    pub(super) fn ahead_of(&self, rank: u8) -> usize {
        self.waiting.partition_point(|waiting| waiting.rank <= rank)
    }

    /// Takes a request in. Where the queue is full, the least important and newest request goes, which may be
    /// this one.
    pub(super) fn push(&mut self, waiting: Waiting<T>) -> Option<Waiting<T>> {
        let place = self.ahead_of(waiting.rank);
        self.waiting.insert(place, waiting);
        if self.waiting.len() > self.bound { self.waiting.pop_back() } else { None }
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<T>> {
        self.waiting.pop_front()
    }

    /// Takes out a request whose time is over, if there is one. O(length).
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<Waiting<T>> {
        let place = self.waiting.iter().position(|waiting| waiting.leaves_at <= now)?;
        self.waiting.remove(place)
    }

    /// Takes out all requests of which this is true, and says how many. O(length).
    pub(super) fn remove_where(&mut self, is_unwanted: impl Fn(&T) -> bool) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !is_unwanted(&waiting.kept));
        before - self.waiting.len()
    }

    /// Time at which the first request's time is over. O(length).
    pub(super) fn next_late_at(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.leaves_at).min()
    }
}
