//! Time for which a class's requests gather before a round of theirs (Cataclysm §3.2.1, eq. 8 to 13), found
//! numerically.
//!
//! A more important request is denied when it comes while the system is full of less important ones that were
//! let in a moment earlier. The longer these have to wait for their rounds, the less often that is. For class
//! j, with λ its rate, p the share of requests refused, F its service times, and N requests in service on
//! each server: it has a request in a given round with probability 1 − e^(−λd), lets it in with 1 − p, and it
//! is still there l rounds later with 1 − F(l·d/N). So the chance that j stands in the way is about p (1 −
//! e^(−λd)) (1 − p) Σ (1 − F(l·d/N)), l from 1 on.
//!
//! Against the paper: the chance is for a request that comes, not for a moment of deciding (with delays near
//! 0 the moments are so frequent that each is harmless, and d = 0 would satisfy any bound); each class may
//! have its part of the bound on what more important ones suffer; a sum that is no probability any more (it
//! can exceed 1) counts as 1. Delays are no longer than is sensible, and 0 while there is room. Where the
//! bound asks for more, only the reservation on requests in flight protects the more important.

use super::sample::Sample;
use super::service_times::{LANES_END_US, SERVICE_TIMES};
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::{Duration, Instant};

/// Delays in force, by class.
#[derive(Debug)]
pub(super) struct Delays {
    /// Recent completions by class and service-time bucket, faded.
    services: Vec<[f64; SERVICE_TIMES]>,
    delays_s: Vec<f64>,
    next_at: Instant,
}

/// Inputs of the search for delays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// By class: the rank, requests offered per second, and the target.
    pub(super) classes: Vec<(u8, f64, Duration)>,
    /// Requests in service on each server.
    pub(super) in_service: f64,
    /// Share of requests refused.
    pub(super) refused: f64,
    /// Utilisation of the servers with all that is offered; above 1 in an overload.
    pub(super) utilisation: f64,
}

impl Delays {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            services: vec![[0.0; SERVICE_TIMES]; classes],
            delays_s: vec![0.0; classes],
            next_at: Instant::ZERO,
        }
    }

    pub(super) fn observe(&mut self, sample: &Sample) {
        for (services, counts) in self.services.iter_mut().zip(&sample.classes) {
            let fade = libm::exp(-(counts.completed as f64) / SERVICES_MEMORY);
            for (known, &seen) in services.iter_mut().zip(&counts.services) {
                *known = *known * fade + f64::from(seen);
            }
        }
    }

    /// Each class's delay.
    pub(super) fn plan(&mut self, now: Instant, load: &Load) -> Vec<Duration> {
        if now >= self.next_at {
            self.next_at = now + PERIOD;
            let solved_s = self.solve(load);
            for (delay_s, solved_s) in self.delays_s.iter_mut().zip(solved_s) {
                *delay_s += (solved_s - *delay_s) * DAMPING;
            }
        }
        let part = ((load.utilisation - IDLE_BELOW) / (FULL_FROM - IDLE_BELOW)).clamp(0.0, 1.0);
        self.delays_s.iter().map(|&delay_s| Duration::from_secs_f64(delay_s * part)).collect()
    }

    /// From the most important rank on, whose delay is 0, each as long as the bound asks for and no shorter
    /// than the one before.
    fn solve(&self, load: &Load) -> Vec<f64> {
        let ranks = load.classes.iter().map(|&(rank, ..)| rank).max().unwrap_or(0);
        let mut delays_s = vec![0.0; load.classes.len()];
        let mut before_s = 0.0f64;
        for rank in 1..=ranks {
            let (mut services, mut offered_rps, mut target_s) = ([0.0; SERVICE_TIMES], 0.0, f64::INFINITY);
            for (class, &(_, rps, target)) in
                load.classes.iter().enumerate().filter(|(_, (of, ..))| *of == rank)
            {
                services.iter_mut().zip(self.services[class]).for_each(|(all, own)| *all += own);
                offered_rps += rps;
                target_s = target_s.min(target.as_secs_f64());
            }
            let most_s = (target_s / 4.0).min(DELAY_MOST_S);
            let chance = |delay_s: f64| in_the_way(&services, offered_rps, load, delay_s);
            before_s = shortest(chance, BOUND / f64::from(ranks), most_s).max(before_s);
            for (delay_s, _) in delays_s.iter_mut().zip(&load.classes).filter(|(_, (of, ..))| *of == rank) {
                *delay_s = before_s;
            }
        }
        delays_s
    }
}

/// The chance that a more important request is denied because of a class with this delay.
fn in_the_way(services: &[f64; SERVICE_TIMES], offered_rps: f64, load: &Load, delay_s: f64) -> f64 {
    let refused = load.refused.clamp(0.0, 1.0);
    let has_somebody = 1.0 - libm::exp(-offered_rps * delay_s);
    let chance = has_somebody * (1.0 - refused) * rounds_stayed(services, load.in_service * 1e6, delay_s);
    refused * chance.min(1.0)
}

/// Σ over l ≥ 1 of 1 − F(l·d/N): in how many later rounds a request is still there. Service times are those
/// of the histogram's buckets, so the sum is finite: a request that stays for s·N sees as many rounds as
/// begin before that.
fn rounds_stayed(services: &[f64; SERVICE_TIMES], stretch_us: f64, delay_s: f64) -> f64 {
    let count: f64 = services.iter().sum();
    if count <= 0.0 || delay_s <= 0.0 {
        return 0.0;
    }
    let stays = services.iter().enumerate().map(|(lane, &known)| {
        let stays_s = middle_us(lane) / 1e6 * (stretch_us / 1e6).max(1.0);
        known * (libm::ceil(stays_s / delay_s) - 1.0).max(0.0)
    });
    stays.sum::<f64>() / count
}

/// Representative service time of a bucket, microseconds.
fn middle_us(lane: usize) -> f64 {
    let ends = |lane: usize| LANES_END_US.get(lane).map(|&us| f64::from(us));
    let low = lane.checked_sub(1).and_then(ends).unwrap_or(0.0);
    match ends(lane) {
        Some(high) => (low + high) / 2.0,
        // As if there were one more bucket.
        None => low * 1.25,
    }
}

/// The shortest delay from which on the chance is within the bound, or the longest.
fn shortest(chance: impl Fn(f64) -> f64, bound: f64, most_s: f64) -> f64 {
    let (mut low_s, mut high_s) = (0.0, most_s);
    if chance(DELAY_LEAST_S) <= bound {
        return 0.0;
    }
    // To a microsecond.
    for _ in 0..20 {
        let middle_s = (low_s + high_s) / 2.0;
        if chance(middle_s) <= bound {
            high_s = middle_s;
        } else {
            low_s = middle_s;
        }
    }
    high_s
}

/// Maximum chance that a more important request is denied because of less important ones (ε in the paper).
const BOUND: f64 = 0.05;
/// Delays follow the load slowly: to hold requests longer changes the load itself.
const PERIOD: Duration = Duration::from_secs(15);
const DAMPING: f64 = 0.3;
/// No round gathers for longer.
const DELAY_MOST_S: f64 = 0.5;
/// A round that is not even a request long.
const DELAY_LEAST_S: f64 = 1e-4;
/// Below this utilisation there is no delay, and from the other on the whole one.
const IDLE_BELOW: f64 = 0.7;
const FULL_FROM: f64 = 0.9;
/// Requests over which service times are remembered.
const SERVICES_MEMORY: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Three classes with exponential service times of 15.5 ms, as many as come in some seconds.
    fn delays() -> Delays {
        let mut delays = Delays::new(3);
        let share_below = |us: f64| 1.0 - libm::exp(-us / 15_500.0);
        for services in &mut delays.services {
            for (lane, count) in services.iter_mut().enumerate() {
                let end = |lane: usize| LANES_END_US.get(lane).map_or(1.0, |&us| share_below(us.into()));
                *count = 1_000.0 * (end(lane) - lane.checked_sub(1).map_or(0.0, end));
            }
        }
        delays
    }

    fn load(in_service: f64, refused: f64, utilisation: f64) -> Load {
        let classes = vec![(0, 60.0, MS * 4_000), (1, 60.0, MS * 4_000), (2, 120.0, MS * 4_000)];
        Load { classes, in_service, refused, utilisation }
    }

    /// A study of the formula with these numbers found 0.17 s for five requests in service on each server,
    /// and more than is sensible (0.7 s) for twenty.
    #[test]
    fn delays_are_as_long_as_the_bound_asks_for() {
        let delays = delays();
        let solved = delays.solve(&load(5.0, 0.3, 1.5));
        assert!(solved[0] == 0.0 && solved[1] <= solved[2], "{solved:?}");
        assert!((0.1..0.25).contains(&solved[2]), "{solved:?}");
        let chance = in_the_way(&delays.services[2], 120.0, &load(5.0, 0.3, 1.5), solved[2]);
        assert!(chance <= BOUND / 2.0, "{chance}");
        assert_eq!(delays.solve(&load(20.0, 0.3, 1.5)), [0.0, DELAY_MOST_S, DELAY_MOST_S]);
        assert_eq!(delays.solve(&load(5.0, 0.0, 1.5)), [0.0; 3], "no request is refused");
        assert_eq!(Delays::new(3).solve(&load(5.0, 0.3, 1.5)), [0.0; 3], "service times are unknown");
    }

    #[test]
    fn there_is_no_delay_while_there_is_room() {
        let mut delays = delays();
        let at = Instant::from_secs;
        let busy = delays.plan(at(1), &load(5.0, 0.3, 1.5));
        assert!(busy[2] > MS * 10 && busy[2] < MS * 100, "a third of the way: {busy:?}");
        let half = delays.plan(at(2), &load(5.0, 0.3, 0.8));
        assert!(half[2].abs_diff(busy[2] / 2) < MS, "{half:?}");
        assert_eq!(delays.plan(at(3), &load(5.0, 0.3, 0.5)), [Duration::ZERO; 3]);
        assert!(delays.plan(at(16), &load(5.0, 0.3, 1.5))[2] > busy[2]);
    }

    #[test]
    fn classes_worth_the_same_have_the_same_delay() {
        let mut load = load(5.0, 0.3, 1.5);
        load.classes[1].0 = 0;
        load.classes[2].0 = 1;
        let solved = delays().solve(&load);
        assert!(solved[0] == 0.0 && solved[1] == 0.0 && solved[2] > 0.1, "{solved:?}");
    }
}
