//! Arrivals paced worker by worker, as benchmark tools do: the thesis's methods 2 and 4.
//!
//! R. Esser's thesis ("Performance Analysis of a Flash-Crowd Management System", 2006, §3.3 and §3.5)
//! compares how a benchmark may time its requests. They are offered so that a user can see the difference;
//! none resembles a crowd. Its method 1 is a closed loop and so no arrival process at all; method 3 is
//! [`ArrivalProcess::interleaved`](super::ArrivalProcess::interleaved).

use super::ArrivalError;
use flashweir_core::Rng;
use flashweir_core::limits::PACED_WORKERS;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Method 4's wait between two requests of a worker, 0.7 s to 1.3 s. The thesis says "an average between"; it
/// is read as uniform on that interval.
const WAIT_SHORTEST_NS: u64 = 700_000_000;
const WAIT_SPREAD_NS: u64 = 600_000_000;

/// Method 2 (§3.3): each worker sends once a second at its own place within the second, but several
/// machines that do not agree on one start each choose the same places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colliding {
    workers: u32,
    machines: u32,
    length: Duration,
}

impl Colliding {
    pub(super) fn new(workers: u32, machines: u32, length: Duration) -> Result<Self, ArrivalError> {
        checked_workers(workers)?;
        if machines == 0 || machines > workers {
            return Err(ArrivalError::Machines { machines, workers });
        }
        Ok(Self { workers, machines, length })
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }

    pub(super) fn expected(&self) -> f64 {
        let whole = self.length.as_secs() as f64 * f64::from(self.workers);
        let rest_ns = u64::from(self.length.subsec_nanos());
        let within = (0..self.workers).filter(|worker| self.place_ns(*worker) < rest_ns).count();
        whole + within as f64
    }

    pub(super) fn moments(&self) -> CollidingMoments<'_> {
        CollidingMoments { process: self, second: 0, worker: 0 }
    }

    /// Position within each second at which a worker sends, nanoseconds. Workers are dealt out to the
    /// machines like cards; if they do not divide evenly, the last place of the second is used by fewer
    /// machines.
    fn place_ns(&self, worker: u32) -> u64 {
        let places = u64::from(self.workers.div_ceil(self.machines));
        u64::from(worker / self.machines) * SECOND_NS / places
    }
}

/// The moments of [`Colliding`] in order.
#[derive(Clone, Debug)]
pub(super) struct CollidingMoments<'a> {
    process: &'a Colliding,
    second: u64,
    worker: u32,
}

impl Iterator for CollidingMoments<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.worker == self.process.workers {
            self.worker = 0;
            self.second += 1;
        }
        let moment =
            Duration::from_secs(self.second) + Duration::from_nanos(self.process.place_ns(self.worker));
        (moment < self.process.length).then(|| {
            self.worker += 1;
            moment
        })
    }
}

/// Method 4 (§3.5): worker x of W begins at x/W seconds and then waits a time drawn uniformly from 0.7 s to
/// 1.3 s between its requests, independently of the answers: an open loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomTiming {
    workers: u32,
    length: Duration,
}

impl RandomTiming {
    pub(super) fn new(workers: u32, length: Duration) -> Result<Self, ArrivalError> {
        checked_workers(workers)?;
        Ok(Self { workers, length })
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// From the renewal function of waits with mean 1 s and variance 0.03 s², t + (1 + 0.03)/2 with the
    /// request at the start counted, averaged over the starts. Within 3 % of a request per worker from a
    /// length of 4 s.
    pub(super) fn expected(&self) -> f64 {
        let workers = f64::from(self.workers);
        let mean_start_s = (workers - 1.0) / (2.0 * workers);
        workers * (self.length.as_secs_f64() - mean_start_s + 0.515).max(0.0)
    }

    pub(super) fn moments(&self, seed: u64) -> RandomTimingMoments {
        let workers = u64::from(self.workers);
        let starts = (0..workers).map(|worker| Reverse((worker * SECOND_NS / workers, worker as u32)));
        RandomTimingMoments { due: starts.collect(), rng: Rng::new(seed), length: self.length }
    }
}

/// The moments of [`RandomTiming`] in order: O(log workers) for each.
#[derive(Clone, Debug)]
pub(super) struct RandomTimingMoments {
    /// Each worker's next request in nanoseconds, and its number to make equal moments' order certain.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    rng: Rng,
    length: Duration,
}

impl Iterator for RandomTimingMoments {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // Changing the earliest in place sifts once; taking it out and putting it back would sift twice.
        let mut earliest = self.due.peek_mut()?;
        let moment = Duration::from_nanos(earliest.0.0);
        (moment < self.length).then(|| {
            earliest.0.0 += WAIT_SHORTEST_NS + self.rng.below(WAIT_SPREAD_NS + 1);
            moment
        })
    }
}

pub(super) fn checked_workers(workers: u32) -> Result<(), ArrivalError> {
    if (1..=PACED_WORKERS).contains(&workers) { Ok(()) } else { Err(ArrivalError::Workers(workers)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn colliding_ms(workers: u32, machines: u32, length: Duration) -> Vec<u128> {
        let process = Colliding::new(workers, machines, length).unwrap();
        let moments: Vec<_> = process.moments().map(|moment| moment.as_millis()).collect();
        assert_eq!(process.expected(), moments.len() as f64);
        moments
    }

    #[test]
    fn machines_that_do_not_agree_collide() {
        assert_eq!(colliding_ms(4, 1, SECOND), [0, 250, 500, 750]);
        assert_eq!(colliding_ms(4, 2, SECOND * 3 / 2), [0, 0, 500, 500, 1000, 1000]);
        assert_eq!(colliding_ms(5, 2, SECOND), [0, 0, 333, 333, 666]);
        assert_eq!(colliding_ms(3, 3, SECOND * 2), [0, 0, 0, 1000, 1000, 1000]);
    }

    #[test]
    fn every_worker_waits_as_the_thesis_says_and_starts_at_its_place() {
        let process = RandomTiming::new(1, 1000 * SECOND).unwrap();
        let moments: Vec<_> = process.moments(5).collect();
        assert_eq!(moments[0], Duration::ZERO);
        let waits: Vec<f64> = moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(waits.iter().all(|wait| (0.7..=1.3).contains(wait)));
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / waits.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 0.03).abs() < 0.004, "{mean} {variance}");
        let early: Vec<_> = RandomTiming::new(4, SECOND * 7 / 10).unwrap().moments(5).collect();
        assert_eq!(early, [0, 250, 500].map(Duration::from_millis));
    }

    #[test]
    fn randomly_timed_workers_count_to_what_is_expected() {
        for seed in 0..20 {
            let process = RandomTiming::new(500, 10 * SECOND).unwrap();
            let moments: Vec<_> = process.moments(seed).collect();
            assert!(moments.is_sorted() && moments.last().is_some_and(|last| *last < 10 * SECOND));
            // A worker's number of requests in ten seconds has a standard deviation of about 0.6.
            let error = (moments.len() as f64 - process.expected()).abs();
            assert!(error < 5.0 * 0.6 * f64::sqrt(500.0), "seed {seed}: {error} off {}", process.expected());
        }
    }

    #[test]
    fn no_workers_and_too_many_are_refused() {
        assert!(matches!(RandomTiming::new(0, SECOND), Err(ArrivalError::Workers(0))));
        assert!(matches!(RandomTiming::new(u32::MAX, SECOND), Err(ArrivalError::Workers(_))));
        assert!(matches!(Colliding::new(4, 5, SECOND), Err(ArrivalError::Machines { .. })));
        assert!(matches!(Colliding::new(4, 0, SECOND), Err(ArrivalError::Machines { .. })));
    }
}
