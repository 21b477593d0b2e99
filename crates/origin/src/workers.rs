//! The queue and the threads that empty it, first come first served.

use crate::work::follow_chain;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Work waiting for a thread. Bounded only by the connections open, each of which waits for one answer.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    arrived: Condvar,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Job {
    iterations: u64,
    done: oneshot::Sender<()>,
}

impl Queue {
    /// Queues work; the receiver hears when it is done, or an error when the origin shut down first.
    pub(crate) fn push(&self, iterations: u64) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        let mut jobs = self.lock();
        // Looked at under the lock: `close` empties the queue once, and nothing may be added behind its back.
        if !self.is_closed() {
            jobs.push_back(Job { iterations, done });
            self.arrived.notify_one();
        }
        receiver
    }

    /// What a working thread does until the queue is closed.
    pub(crate) fn work(&self) {
        while let Some(job) = self.next() {
            follow_chain(job.iterations, &self.closed);
            // A client that left in the meantime is not missed: like a forking server, we only notice now.
            let _ = job.done.send(());
        }
    }

    /// Drops what is queued and lets the threads end.
    pub(crate) fn close(&self) {
        let mut jobs = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        jobs.clear();
        self.arrived.notify_all();
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if self.is_closed() {
                return None;
            }
            if let Some(job) = jobs.pop_front() {
                return Some(job);
            }
            // The guarded queue stays consistent at every point, so another thread's panic does not spoil it.
            jobs = self.arrived.wait(jobs).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_first_come_first_served() {
        let queue = Queue::default();
        let mut first = queue.push(10);
        let mut second = queue.push(20);
        let job = queue.next().unwrap();
        assert_eq!(job.iterations, 10);
        job.done.send(()).unwrap();
        assert_eq!(first.try_recv(), Ok(()));
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn closing_drops_what_waits_and_what_comes_after() {
        let queue = Queue::default();
        let mut before = queue.push(1);
        queue.close();
        let mut after = queue.push(1);
        assert_eq!(before.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(after.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        queue.work();
    }
}
