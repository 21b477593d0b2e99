//! Both cores of a small machine at work.

use std::sync::Mutex;

const THREADS: usize = 2;

/// Results of `work` for each job, in their order.
pub(crate) fn on_all<T: Send, R: Send>(jobs: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(jobs.into_iter().enumerate());
    let take = || next.lock().expect("no job panicked").next();
    let run = || -> Vec<(usize, R)> {
        let done = std::iter::from_fn(|| take().map(|(at, job)| (at, work(job))));
        done.collect()
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, done)| done).collect()
}
