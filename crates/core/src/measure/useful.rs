//! Useful work of an origin: the share of wall time in which it was busy, times the share of its completions
//! that were in time.
//!
//! From two [`Reading`]s of the origin, at the beginning and at the end of a span, and the number of answers
//! that reached clients within their target in between:
//!
//! ```text
//! useful = busy × in time      busy = time running or runnable / wall time      in time = answers in time / completions
//! ```
//!
//! Why not goodput over a capacity that was measured beforehand: a shared machine changes its speed by half
//! within minutes, and such a ratio measures that. Here numerator and denominator are of the same seconds. An
//! origin that idles while clients are refused lowers the first factor; one that works for clients who have
//! left lowers the second.
//!
//! Time in which a thread is runnable but waits for a processor counts as busy: the gateway had given the
//! origin enough to do, and another process had the core. Two threads of one origin may be runnable at the
//! same time, so their times cannot be added. *Busy* is therefore the larger of two lower bounds of the time
//! in which any thread was running or runnable: the longest such time of a single thread, and, where one core
//! runs all threads, the sum of the running times.
//!
//! Cost: linear in the number of threads.

use alloc::string::String;
use alloc::vec::Vec;

/// The scheduler's account of one thread since its start: the first two numbers of
/// `/proc/PID/task/TID/schedstat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread's id, by which two readings are compared.
    pub id: u64,
    /// Time on a processor, nanoseconds.
    pub running_ns: u64,
    /// Time runnable and waiting for a processor, nanoseconds.
    pub waiting_ns: u64,
}

/// A text that is not a `schedstat`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a schedstat: nanoseconds on a processor, nanoseconds waiting for one and a count, found {found:?}"
)]
pub struct InvalidSchedstat {
    found: String,
}

impl ThreadTime {
    /// Reads the `schedstat` of thread `id`.
    ///
    /// # Errors
    /// The text does not consist of three numbers.
    pub fn parse(id: u64, schedstat: &str) -> Result<Self, InvalidSchedstat> {
        let invalid = || InvalidSchedstat { found: schedstat.chars().take(FOUND_CHARS_MAX).collect() };
        let mut numbers = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next().and_then(Result::ok).ok_or_else(invalid);
        let (running_ns, waiting_ns, _slices) = (next()?, next()?, next()?);
        if numbers.next().is_some() {
            return Err(invalid());
        }
        Ok(Self { id, running_ns, waiting_ns })
    }
}

/// Characters of an invalid text that the error repeats: enough to recognise it.
const FOUND_CHARS_MAX: usize = 60;

/// The state of an origin at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, on any clock that does not jump, nanoseconds.
    pub at_ns: u64,
    /// All threads of the origin.
    pub threads: Vec<ThreadTime>,
    /// True if all threads may only run on one and the same core.
    pub on_one_core: bool,
    /// Requests whose work the origin has completed since its start, also for clients that had left.
    pub completed: u64,
}

/// Use of an origin's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Useful {
    /// Share of the wall time in which the origin was running or runnable, 0 to 1.
    pub busy: f64,
    /// Share of the origin's completions that reached a client in time, 0 to 1. 1 without completions:
    /// nothing was late.
    pub in_time: f64,
    /// Processor time that the thread which ran longest spent on each completion, milliseconds; `None`
    /// without completions. Of an origin with one worker it is the cost of a page, which only the speed of
    /// the machine changes: connections are accepted by another thread.
    pub processor_ms: Option<f64>,
}

impl Useful {
    /// Between two readings of one origin. `in_time` is the number of successful answers that reached clients
    /// within their target in between.
    ///
    /// Threads that started in between count from their start; those that ended are ignored. `None` if no
    /// time has passed or a count went backwards, as after a restart of the origin.
    ///
    /// ```
    /// use flashweir_core::measure::useful::{Reading, ThreadTime, Useful};
    /// let reading = |at_ns, running_ns, completed| Reading {
    ///     at_ns,
    ///     threads: vec![ThreadTime { id: 7, running_ns, waiting_ns: 0 }],
    ///     on_one_core: true,
    ///     completed,
    /// };
    /// let useful = Useful::between(&reading(0, 0, 0), &reading(1_000, 900, 100), 80).unwrap();
    /// assert_eq!((useful.busy, useful.in_time, useful.useful()), (0.9, 0.8, 0.9 * 0.8));
    /// ```
    #[must_use]
    pub fn between(before: &Reading, after: &Reading, in_time: u64) -> Option<Self> {
        let wall_ns = after.at_ns.checked_sub(before.at_ns).filter(|wall_ns| *wall_ns > 0)?;
        let completed = after.completed.checked_sub(before.completed)?;
        let (mut running_ns, mut longest_ns, mut worker_ns) = (0, 0, 0);
        for thread in &after.threads {
            let earlier = before.threads.iter().find(|earlier| earlier.id == thread.id);
            let since = |now: u64, of: fn(&ThreadTime) -> u64| now.checked_sub(earlier.map_or(0, of));
            let running = since(thread.running_ns, |thread| thread.running_ns)?;
            let waiting = since(thread.waiting_ns, |thread| thread.waiting_ns)?;
            running_ns += running;
            worker_ns = running.max(worker_ns);
            longest_ns = longest_ns.max(running + waiting);
        }
        let busy_ns = if after.on_one_core { longest_ns.max(running_ns) } else { longest_ns };
        let share = |part: u64, whole: u64| (part as f64 / whole as f64).min(1.0);
        Some(Self {
            busy: share(busy_ns, wall_ns),
            in_time: if completed == 0 { 1.0 } else { share(in_time, completed) },
            processor_ms: (completed > 0).then(|| worker_ns as f64 / 1e6 / completed as f64),
        })
    }

    /// Share of the wall time that went into answers in time, 0 to 1.
    #[must_use]
    pub fn useful(&self) -> f64 {
        self.busy * self.in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn thread(id: u64, running_ns: u64, waiting_ns: u64) -> ThreadTime {
        ThreadTime { id, running_ns, waiting_ns }
    }

    fn reading(at_ns: u64, threads: Vec<ThreadTime>, completed: u64) -> Reading {
        Reading { at_ns, threads, on_one_core: true, completed }
    }

    #[test]
    fn a_schedstat_is_three_numbers() {
        assert_eq!(ThreadTime::parse(3, "120 45 6\n"), Ok(thread(3, 120, 45)));
        for wrong in ["", "120", "120 45", "120 45 6 7", "120 -45 6", "120 x 6", "1e9 1 1"] {
            let message = ThreadTime::parse(3, wrong).unwrap_err().to_string();
            assert!(message.starts_with("expected a schedstat: ") && message.contains(wrong), "{message}");
        }
        let long = "x".repeat(10_000);
        assert!(ThreadTime::parse(3, &long).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn waiting_for_the_processor_is_busy_and_work_for_those_who_left_is_not_in_time() {
        let before = reading(1_000, vec![thread(1, 100, 10)], 5);
        let after = reading(2_000, vec![thread(1, 700, 310)], 105);
        let useful = Useful::between(&before, &after, 50).unwrap();
        assert_eq!((useful.busy, useful.in_time), (0.9, 0.5));
        assert_eq!((useful.useful(), useful.processor_ms), (0.45, Some(600.0 / 1e6 / 100.0)));
    }

    /// Two threads on one core: while one runs, the other's waiting is the same time again.
    #[test]
    fn overlapping_times_are_not_counted_twice() {
        let before = reading(0, vec![thread(1, 0, 0), thread(2, 0, 0)], 0);
        let busy = |one: ThreadTime, other: ThreadTime, on_one_core| {
            let after = Reading { on_one_core, ..reading(1_000, vec![one, other], 1) };
            Useful::between(&before, &after, 1).unwrap().busy
        };
        assert_eq!(busy(thread(1, 500, 100), thread(2, 100, 400), true), 0.6);
        // They took turns: the first never waited while the second ran.
        assert_eq!(busy(thread(1, 500, 0), thread(2, 100, 0), true), 0.6);
        // On two cores the second may have run beside the first.
        assert_eq!(busy(thread(1, 500, 0), thread(2, 100, 0), false), 0.5);
    }

    #[test]
    fn threads_that_start_count_and_threads_that_end_do_not() {
        let before = reading(0, vec![thread(1, 900, 0)], 0);
        let after = reading(1_000, vec![thread(2, 400, 0)], 0);
        let useful = Useful::between(&before, &after, 0).unwrap();
        assert_eq!((useful.busy, useful.in_time, useful.processor_ms), (0.4, 1.0, None));
    }

    #[test]
    fn shares_never_exceed_the_whole() {
        let before = reading(0, vec![thread(1, 0, 0)], 0);
        // A clock read a moment early, an answer counted a moment late.
        let useful = Useful::between(&before, &reading(1_000, vec![thread(1, 1_001, 3)], 9), 10).unwrap();
        assert_eq!((useful.busy, useful.in_time), (1.0, 1.0));
    }

    #[test]
    fn no_time_or_a_count_that_went_backwards_is_no_measurement() {
        let before = reading(1_000, vec![thread(1, 500, 5)], 7);
        for after in [
            reading(1_000, vec![thread(1, 500, 5)], 7),
            reading(900, vec![thread(1, 500, 5)], 7),
            reading(2_000, vec![thread(1, 499, 5)], 7),
            reading(2_000, vec![thread(1, 500, 4)], 7),
            reading(2_000, vec![thread(1, 500, 5)], 6),
        ] {
            assert_eq!(Useful::between(&before, &after, 0), None, "{after:?}");
        }
    }
}
