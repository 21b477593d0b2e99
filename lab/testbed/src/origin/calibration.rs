//! Amount of work in a millisecond on this machine.

use crate::origin::work::follow_chain;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::AtomicBool;

/// Odd, so that there is a middle one.
const ROUNDS: usize = 9;
/// Long against the clock's resolution, short against a user's patience.
const ROUND_MS: f64 = 8.0;
/// Ends the search for a round's length even if the clock stood still.
const MAX_LINKS: u64 = 1 << 28;

/// Links of the hash chain per millisecond of this thread's processor time: the median of several rounds, so
/// that an interrupted round does not count. Takes about 100 ms.
#[must_use]
pub fn calibrate() -> f64 {
    let mut links = 1_000;
    // Doubling both finds a round's length and wakes the processor from its slow idle clock.
    while links < MAX_LINKS && (links as f64) < measure(links) * ROUND_MS {
        links *= 2;
    }
    let mut rounds: [f64; ROUNDS] = std::array::from_fn(|_| measure(links));
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Links per millisecond over a round of `links`.
fn measure(links: u64) -> f64 {
    let before = thread_cpu_ms();
    follow_chain(links, &AtomicBool::new(false));
    links as f64 / (thread_cpu_ms() - before).max(1e-6)
}

fn thread_cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processor time, not wall time, so a busy machine changes little; but a core that is shared with
    /// another thread may slow down by two between the calibration and the work. The median of five.
    #[test]
    fn calibrated_work_takes_the_time_it_was_calibrated_to() {
        let mut taken_ms: [f64; 5] = std::array::from_fn(|_| {
            let links = (calibrate() * 20.0) as u64;
            let before = thread_cpu_ms();
            follow_chain(links, &AtomicBool::new(false));
            thread_cpu_ms() - before
        });
        taken_ms.sort_by(f64::total_cmp);
        assert!((10.0..40.0).contains(&taken_ms[2]), "20 ms of work took {taken_ms:.1?} ms");
    }
}
