//! The queue and the threads that empty it, first come first served.

use crate::origin::work::follow_chain;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Work waiting for a thread. Bounded only by the connections open, each of which waits for one answer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Work arrived, or the number of threads that take some changed.
    changed: Condvar,
    closing: Condvar,
    closed: AtomicBool,
    started: usize,
    cold_wait: Duration,
    /// Requests to come that are cold.
    cold: AtomicU64,
    /// Requests whose work is done, also for clients that had left by then.
    completed: AtomicU64,
}

#[derive(Debug)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that take work; those with this number and higher stand still.
    workers: usize,
}

/// The first requests, which also wait while caches, pools and compilers warm up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cold {
    /// Number of them.
    pub requests: u64,
    /// Time for which each holds its thread, in place of its usual wait.
    pub wait: Duration,
}

/// Cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Links of the hash chain.
    pub(crate) iterations: u64,
    /// Time that the thread then waits for another service.
    pub(crate) wait: Duration,
}

#[derive(Debug)]
struct Job {
    cost: Cost,
    done: oneshot::Sender<()>,
}

impl Queue {
    /// A queue for the threads, all of which take work.
    pub(crate) fn new(started: usize, cold: Cold) -> Self {
        Self {
            state: Mutex::new(State { jobs: VecDeque::new(), workers: started }),
            changed: Condvar::new(),
            closing: Condvar::new(),
            closed: AtomicBool::new(false),
            started,
            cold_wait: cold.wait,
            cold: AtomicU64::new(cold.requests),
            completed: AtomicU64::new(0),
        }
    }

    /// Queues work; the receiver hears when it is done, or an error when the origin shut down first.
    pub(crate) fn push(&self, cost: Cost) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        let mut state = self.lock();
        // Looked at under the lock: `close` empties the queue once, and nothing may be added behind its back.
        if !self.is_closed() {
            state.jobs.push_back(Job { cost, done });
            if state.workers == self.started {
                self.changed.notify_one();
            } else {
                // All of them: the one woken might be a thread that stands still.
                self.changed.notify_all();
            }
        }
        receiver
    }

    /// Lets `workers` of the threads take work from now on; the others finish the requests that they have
    /// begun. False if there are fewer.
    pub(crate) fn employ(&self, workers: usize) -> bool {
        let possible = (1..=self.started).contains(&workers);
        if possible {
            self.lock().workers = workers;
            self.changed.notify_all();
        }
        possible
    }

    /// Makes the next `requests` cold, as after a restart.
    pub(crate) fn cool(&self, requests: u64) {
        self.cold.store(requests, Ordering::Relaxed);
    }

    /// Work of the thread of this number until the queue is closed.
    pub(crate) fn work(&self, number: usize) {
        while let Some(job) = self.next(number) {
            let one_less = |left: u64| left.checked_sub(1);
            let is_cold = self.cold.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
            follow_chain(job.cost.iterations, &self.closed);
            self.wait(if is_cold { self.cold_wait } else { job.cost.wait });
            self.completed.fetch_add(1, Ordering::Relaxed);
            // A client that left in the meantime is not missed: like a forking server, we only notice now.
            let _ = job.done.send(());
        }
    }

    /// Requests whose work has been done so far, also for clients that had left by then.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Drops what is queued and lets the threads end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        state.jobs.clear();
        self.changed.notify_all();
        self.closing.notify_all();
    }

    /// Waits as long, or until the queue is closed.
    fn wait(&self, time: Duration) {
        if !time.is_zero() {
            // What came of it is seen at the next look at the queue.
            let _ = self.closing.wait_timeout_while(self.lock(), time, |_| !self.is_closed());
        }
    }

    fn next(&self, number: usize) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if self.is_closed() {
                return None;
            }
            if number < state.workers
                && let Some(job) = state.jobs.pop_front()
            {
                return Some(job);
            }
            // The guarded queue stays consistent at every point, so another thread's panic does not spoil it.
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(iterations: u64) -> Cost {
        Cost { iterations, wait: Duration::ZERO }
    }

    #[test]
    fn work_is_done_first_come_first_served() {
        let queue = Queue::new(1, Cold::default());
        let mut first = queue.push(cost(10));
        let mut second = queue.push(cost(20));
        let job = queue.next(0).unwrap();
        assert_eq!(job.cost.iterations, 10);
        job.done.send(()).unwrap();
        assert_eq!(first.try_recv(), Ok(()));
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn closing_drops_what_waits_and_what_comes_after() {
        let queue = Queue::new(1, Cold::default());
        let mut before = queue.push(cost(1));
        queue.close();
        let mut after = queue.push(cost(1));
        assert_eq!(before.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(after.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        queue.work(0);
    }

    /// The thread that stands still is asked first; the one at work takes both jobs, and then the first joins
    /// again.
    #[test]
    fn threads_are_sent_home_and_called_back() {
        let queue = Queue::new(2, Cold::default());
        assert!(!queue.employ(0) && !queue.employ(3));
        assert!(queue.employ(1));
        std::thread::scope(|scope| {
            let idle = scope.spawn(|| queue.next(1).map(|job| job.cost.iterations));
            let _pending = [queue.push(cost(10)), queue.push(cost(20))];
            assert_eq!(queue.next(0).unwrap().cost.iterations, 10);
            assert!(!idle.is_finished(), "a thread sent home took work");
            assert!(queue.employ(2));
            assert_eq!(idle.join().unwrap(), Some(20));
        });
    }

    #[test]
    fn work_for_clients_that_have_left_is_counted() {
        let queue = Queue::new(1, Cold::default());
        drop(queue.push(cost(10)));
        let served = queue.push(cost(10));
        std::thread::scope(|scope| {
            scope.spawn(|| queue.work(0));
            served.blocking_recv().unwrap();
            queue.close();
        });
        assert_eq!(queue.completed(), 2);
    }

    #[test]
    fn only_the_first_requests_are_cold() {
        let wait = Duration::from_millis(50);
        let queue = Queue::new(1, Cold { requests: 2, wait });
        let requests = [queue.push(cost(1)), queue.push(cost(1)), queue.push(cost(1))];
        let started = std::time::Instant::now();
        let ended: Vec<Duration> = std::thread::scope(|scope| {
            scope.spawn(|| queue.work(0));
            let ended = requests.into_iter().map(|request| {
                request.blocking_recv().unwrap();
                started.elapsed()
            });
            let ended = ended.collect();
            queue.close();
            ended
        });
        assert!(ended[0] >= wait && ended[1] >= 2 * wait, "{ended:?}");
        assert!(queue.completed() == 3 && ended[2] - ended[1] < wait, "{ended:?}");
    }

    #[test]
    fn an_origin_that_starts_again_is_cold_again() {
        let wait = Duration::from_millis(50);
        let queue = Queue::new(1, Cold { requests: 0, wait });
        queue.cool(1);
        let started = std::time::Instant::now();
        let cold = queue.push(cost(1));
        std::thread::scope(|scope| {
            scope.spawn(|| queue.work(0));
            cold.blocking_recv().unwrap();
            queue.close();
        });
        assert!(started.elapsed() >= wait);
    }

    #[test]
    fn closing_ends_a_wait() {
        let queue = Queue::new(1, Cold::default());
        let _pending = queue.push(Cost { iterations: 0, wait: Duration::from_secs(3_600) });
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| queue.work(0));
            queue.close();
            thread.join().unwrap();
        });
    }
}
