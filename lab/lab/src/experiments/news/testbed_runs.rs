//! Values read from runs on the testbed.

use super::plant::Mode;
use super::runs::{MINUTE_S, Runs, Stretch, kbps};
use super::testbed::{BIN_S, BOTTLENECK, CROWD, Testbed, memory_in_use, stretches};
use crate::experiments::{ExperimentError, Laboratory};
use flashweir_admission::flash_crowd::Mode as AlarmMode;
use flashweir_core::Instant;
use flashweir_load::report::Point;
use flashweir_sim::request::{Counts, PacketOutcome, RouterOutcome, RunOutcome};
use flashweir_sim::router::Tick;
use std::ops::Range;

/// Runs on the testbed.
pub(super) type TestbedRuns = Runs<RunOutcome>;

impl TestbedRuns {
    /// Runs every mode for each seed, each changed by `change`.
    pub(super) fn on_testbed(
        laboratory: &Laboratory,
        modes: &[Mode],
        seeds: u32,
        change: impl Fn(&mut Testbed),
    ) -> Result<Self, ExperimentError> {
        let options = laboratory.options();
        Self::of(laboratory, modes, seeds, stretches(options), |mode, seed| {
            let mut testbed = Testbed::new(options, mode, seed);
            change(&mut testbed);
            testbed
        })
    }

    /// Whole pages that people got, per second.
    pub(super) fn processed(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let crowd = self.within(Stretch::Crowd);
        move |outcome| Some(per_second(&packets(outcome).connections, &crowd, |bin| bin.answered))
    }

    /// Connections let in, per second.
    pub(super) fn admitted(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let crowd = self.within(Stretch::Crowd);
        move |outcome| Some(per_second(&router(outcome).bins, &crowd, |bin| bin.admitted))
    }

    /// Part of the crowd that was not let in, percent.
    pub(super) fn rejected_percent(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let (crowd, admitted) = (self.within(Stretch::Crowd), self.admitted());
        move |outcome| {
            let came =
                counts_of(outcome, CROWD, &crowd).unique_offered as f64 / (crowd.end - crowd.start) as f64;
            Some((1.0 - admitted(outcome)? / came) * 100.0)
        }
    }

    /// Part of the crowd that gave up, percent.
    pub(super) fn timed_out_percent(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let crowd = self.within(Stretch::Crowd);
        move |outcome| {
            let counts = counts_of(outcome, CROWD, &crowd);
            Some(counts.timed_out as f64 / counts.unique_offered as f64 * 100.0)
        }
    }

    /// Part of the response packets that the bottleneck dropped, percent.
    pub(super) fn loss_percent(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let crowd = self.within(Stretch::Crowd);
        move |outcome| {
            let responses = &packets(outcome).wires[BOTTLENECK].back;
            let count = |of: fn(&_) -> u64| per_second(responses, &crowd, of);
            Some(count(|bin| bin.dropped) / count(|bin| bin.offered) * 100.0)
        }
    }

    /// Bits that responses sent over the bottleneck, per second.
    pub(super) fn response_bits_per_s(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let crowd = self.within(Stretch::Crowd);
        move |outcome| {
            let responses = &packets(outcome).wires[BOTTLENECK].back;
            Some(8.0 * per_second(responses, &crowd, |bin| bin.delivered_bytes))
        }
    }

    /// The server's memory in use, percent of what it has.
    pub(super) fn memory_percent(&self, stretch: Stretch) -> impl Fn(&RunOutcome) -> Option<f64> {
        let bins = bins(&self.within(stretch));
        move |outcome| {
            let levels = &outcome.levels[bins.clone()];
            let in_service = levels.iter().map(|level| level.in_service_nanos as f64 / (BIN_S as f64 * 1e9));
            Some(in_service.map(memory_in_use).sum::<f64>() / levels.len() as f64 * 100.0)
        }
    }

    /// Mean rate of the fastest tenth.
    pub(super) fn fastest_rate_kbps(&self, stretch: Stretch) -> impl Fn(&RunOutcome) -> Option<f64> {
        let within = self.within(stretch);
        let (from, to) = (Instant::from_secs(within.start), Instant::from_secs(within.end));
        move |outcome| {
            let ticks = router(outcome).ticks.iter().filter(|tick| tick.at > from && tick.at <= to);
            let rates: Vec<f64> = ticks.filter_map(fastest_kbps).collect();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        }
    }

    /// Seconds from the start to the first alarm of all.
    pub(super) fn first_alarm_s(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        |outcome| Some(alarms(outcome).next()?.at.as_secs_f64())
    }

    /// Alarm before the crowd: 1 if there was one, otherwise 0.
    pub(super) fn early_alarm(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let onset = Instant::from_secs(self.onset_s());
        move |outcome| Some(f64::from(u8::from(alarms(outcome).any(|tick| tick.at <= onset))))
    }

    /// Seconds from the onset to the first decision in the crowd that it is one.
    pub(super) fn found_after_s(&self) -> impl Fn(&RunOutcome) -> Option<f64> {
        let onset = Instant::from_secs(self.onset_s());
        move |outcome| {
            let first = alarms(outcome).find(|tick| tick.at > onset)?;
            Some(first.at.saturating_since(onset).as_secs_f64())
        }
    }

    /// The first seed of a mode, interval by interval: seconds, and the fastest tenth's rate in kb/s.
    pub(super) fn fastest_rate_over_time(&self, mode: Mode) -> Vec<Point> {
        let ticks = self.first(mode).into_iter().flat_map(|outcome| &router(outcome).ticks);
        ticks.map(|tick| (tick.at.as_secs_f64(), fastest_kbps(tick))).collect()
    }

    /// The first seed of a mode, minute by minute: seconds, and the mean latency in seconds of the tries of
    /// these classes that began then and completed.
    pub(super) fn latency_over_time(&self, mode: Mode, classes: &[usize]) -> Vec<Point> {
        let Some(outcome) = self.first(mode) else { return Vec::new() };
        let minutes = self.within(Stretch::Crowd).end / MINUTE_S;
        let latency_s = |minute: u64| {
            let within_s = minute * MINUTE_S..(minute + 1) * MINUTE_S;
            let mut counts = Counts::default();
            classes.iter().for_each(|&class| counts.add(&counts_of(outcome, class, &within_s)));
            counts.mean_latency_s()
        };
        (0..minutes).map(|minute| ((minute * MINUTE_S) as f64, latency_s(minute))).collect()
    }
}

/// Outcome of a class's tries that began within a stretch, in seconds from the start.
pub(super) fn counts_of(outcome: &RunOutcome, class: usize, within_s: &Range<u64>) -> Counts {
    let mut counts = Counts::default();
    outcome.classes[class].bins[bins(within_s)].iter().for_each(|bin| counts.add(bin));
    counts
}

/// Ticks at which the planner was not in its normal mode.
fn alarms(outcome: &RunOutcome) -> impl Iterator<Item = &Tick> {
    let alarmed = |tick: &&Tick| tick.explanation.is_some_and(|it| it.mode != AlarmMode::Normal);
    router(outcome).ticks.iter().filter(alarmed)
}

fn fastest_kbps(tick: &Tick) -> Option<f64> {
    tick.corrected.map(|rates| kbps(rates.fastest))
}

fn per_second<B>(of: &[B], within_s: &Range<u64>, count: impl Fn(&B) -> u64) -> f64 {
    let bins = &of[bins(within_s)];
    bins.iter().map(count).sum::<u64>() as f64 / (bins.len() as f64 * BIN_S as f64)
}

/// The bins of a stretch: every series has those of the whole run.
fn bins(within_s: &Range<u64>) -> Range<usize> {
    (within_s.start / BIN_S) as usize..(within_s.end / BIN_S) as usize
}

fn packets(outcome: &RunOutcome) -> &PacketOutcome {
    // Holds because the testbed is a network of packets.
    outcome.packets.as_ref().expect("a run over packets has an outcome of them")
}

fn router(outcome: &RunOutcome) -> &RouterOutcome {
    // Holds because the testbed has one.
    packets(outcome).router.as_ref().expect("a run with a router has an outcome of it")
}
