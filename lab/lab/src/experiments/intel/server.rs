//! The server that all experiments on it share, and how it was chosen.
//!
//! One processor; a request that finds the queue full is refused, and even that takes work, ahead of all
//! other work. Five parameters, each chosen by what the paper measured under an evenly spaced load (its Table
//! 1 and Figures 3 and 4); what a self-similar load does was left out.

use crate::experiments::ExperimentError;
use crate::experiments::laboratory::Simulation;
use flashweir_sim::request::{ClassModel, NetworkModel, Overflow, Scenario, ServerModel, Work, run};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, SelfSimilarity};
use std::time::Duration;

/// Work of a served request, exponential: 73.67 % of the processor at 32.58/s.
pub(super) const WORK: Duration = Duration::from_micros(22_600);
/// Work of a refusal: the OK responses at 71.42/s and 99.55/s.
pub(super) const REFUSAL: Duration = Duration::from_micros(4_000);
/// Places in the queue: from the mean queue at the same rates.
pub(super) const QUEUE: u32 = 256;
/// Requests in service at the same time: from the response times at the same rates.
pub(super) const IN_SERVICE: u32 = 30;
/// Half of what a response takes beside queue and work: the response time at 32.58/s.
pub(super) const ONE_WAY_DELAY: Duration = Duration::from_millis(60);
/// Of each run, which begins with an empty server, as in the paper (§3.2).
pub(super) const LENGTH: Duration = Duration::from_secs(300);
/// Longer than any wait in so short a queue: no request gives up.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Arrival process of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    Even,
    /// M/G/∞ with slots of 0.1 s and Pareto sessions of shape 1.4 (hence a Hurst parameter of 0.8).
    SelfSimilar {
        /// The shortest session; the longer, the deeper the waves.
        shortest: Duration,
    },
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) spacing: Spacing,
    /// Offered per second, on average over the run.
    pub(super) rate_rps: f64,
    pub(super) seed: u64,
}

/// Measurements of a run, over its whole length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Served (HTTP 200) per second.
    pub(super) ok_rps: f64,
    /// Refused as too busy per second.
    pub(super) refused_rps: f64,
    /// Part of the processor's time.
    pub(super) busy: f64,
    /// Mean requests in the queue.
    pub(super) waiting: f64,
    /// Mean of the served, seconds.
    pub(super) response_s: f64,
}

impl Simulation for Load {
    type Outcome = Measured;

    fn run(&self) -> Result<Measured, ExperimentError> {
        let schedule = Schedule::one(self.arrivals(), self.seed);
        // The last stretch of a second is left out where a run ends within it.
        let seconds = schedule.length().as_secs() as usize;
        let class =
            ClassModel { timeout: TIMEOUT, ..ClassModel::new("all", Work::Exponential { mean: WORK }) };
        let overflow = Overflow::Refuse { cost: REFUSAL };
        let server = ServerModel { queue: Some(QUEUE), overflow, ..ServerModel::first_come(1, IN_SERVICE) };
        let scenario = Scenario {
            seed: self.seed,
            network: NetworkModel::Delay(ONE_WAY_DELAY),
            ..Scenario::new(schedule, class, server)
        };
        let outcome = run(&scenario)?;
        let (counts, level) = (outcome.began_within(0..seconds), outcome.mean_level(0..seconds));
        Ok(Measured {
            ok_rps: level.served_rps,
            refused_rps: counts.server_refused as f64 / seconds as f64,
            busy: level.busy,
            waiting: level.waiting,
            response_s: counts.mean_latency_s().unwrap_or(f64::NAN),
        })
    }
}

impl Load {
    /// At the very rate, on average: a self-similar run, whose own mean varies by a tenth and more from seed
    /// to seed, is stretched or squeezed in time until it has it.
    fn arrivals(&self) -> ArrivalProcess {
        // Holds because the experiments' rates are valid, as are the constants.
        let profile = RateProfile::constant(self.rate_rps, LENGTH).expect("a rate");
        match self.spacing {
            Spacing::Even => ArrivalProcess::Constant(profile),
            Spacing::SelfSimilar { shortest } => {
                let slot = Duration::from_millis(100);
                let similarity = SelfSimilarity::new(1.4, slot)
                    .and_then(|similarity| similarity.with_shortest(shortest))
                    .and_then(|similarity| ArrivalProcess::self_similar(profile, similarity));
                evened(&similarity.expect("valid settings"), self.rate_rps, self.seed)
            }
        }
    }
}

fn evened(process: &ArrivalProcess, rate_rps: f64, seed: u64) -> ArrivalProcess {
    let moments: Vec<Duration> = process.moments(seed).collect();
    let factor = moments.len() as f64 / (rate_rps * LENGTH.as_secs_f64());
    let stretched: Vec<Duration> = moments.iter().map(|moment| moment.mul_f64(factor)).collect();
    // Holds because stretching keeps the order, and all arrivals lie within the length.
    ArrivalProcess::given_within(stretched, LENGTH.mul_f64(factor)).expect("moments in order")
}

/// OK responses a second of a server that is never idle: all work is that of those served and of those
/// refused, X·c + (λ − X)·r = 1 with c and r the work of both; below saturation all that are offered.
pub(super) fn closed_form_rps(offered_rps: f64) -> f64 {
    let (work, refusal) = (WORK.as_secs_f64(), REFUSAL.as_secs_f64());
    if offered_rps * work <= 1.0 { offered_rps } else { (1.0 - offered_rps * refusal) / (work - refusal) }
}

/// By how much OK responses fall for each request more, above saturation.
pub(super) fn closed_form_slope() -> f64 {
    -REFUSAL.as_secs_f64() / (WORK.as_secs_f64() - REFUSAL.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_whole_and_falls_with_its_slope() {
        assert_eq!(closed_form_rps(30.0), 30.0);
        let saturation = 1.0 / WORK.as_secs_f64();
        assert!((closed_form_rps(saturation + 1e-9) - saturation).abs() < 1e-6);
        assert!((closed_form_rps(99.55) - 32.354).abs() < 1e-3);
        let fall = (closed_form_rps(90.0) - closed_form_rps(80.0)) / 10.0;
        assert!((fall - closed_form_slope()).abs() < 1e-9 && (fall + 0.215).abs() < 1e-3);
    }

    #[test]
    fn every_self_similar_run_has_the_mean_it_says() {
        for seed in 1..4 {
            let spacing = Spacing::SelfSimilar { shortest: Duration::from_secs(1) };
            let process = Load { spacing, rate_rps: 70.0, seed }.arrivals();
            let people = process.moments(0).count() as f64;
            assert!((people / process.length().as_secs_f64() - 70.0).abs() < 1e-6);
            assert!((150.0..600.0).contains(&process.length().as_secs_f64()), "{:?}", process.length());
        }
    }
}
