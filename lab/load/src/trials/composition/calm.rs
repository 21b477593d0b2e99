//! Stretches of real days that fit into the origin: nothing may happen on them.
//!
//! Each count of a trace becomes a second. The stretch of a trace is the burstiest whose busiest second still
//! fits at the highest load ([`stretch`]); where a trace has no such stretch, the least bursty is taken and
//! scaled down until it fits.
//!
//! Bars: no alarm, no refusal, at most one change of the verdict a minute.

use crate::trials::useful::Composition;
use flashweir_core::measure::Useful;
use std::fmt::Write;

/// Mean load over the origin's capacity.
pub const LOADS: [f64; 3] = [0.3, 0.5, 0.7];
/// The busiest second over the capacity, at most: drawn arrivals exceed the rate by a little now and then.
pub const BUSIEST: f64 = 0.95;

/// `bins` counts of a trace in a row, all but silent ones; `None` where there are fewer.
#[must_use]
pub fn stretch(counts: &[f64], bins: usize) -> Option<&[f64]> {
    let burstiest_allowed = BUSIEST / LOADS[LOADS.len() - 1];
    let windows = counts.windows(bins.max(1)).step_by((bins / 4).max(1));
    let ratios = windows.filter_map(|window| Some((window, burstiness(window)?)));
    let (fitting, others): (Vec<_>, Vec<_>) = ratios.partition(|(_, ratio)| *ratio <= burstiest_allowed);
    let by_ratio = |one: &(&[f64], f64), other: &(&[f64], f64)| one.1.total_cmp(&other.1);
    let best = fitting.into_iter().max_by(by_ratio);
    best.or_else(|| others.into_iter().min_by(by_ratio)).map(|(window, _)| window)
}

/// Requests a second of each second of a stretch, for a mean of `load` times the capacity or what its busiest
/// second allows.
#[must_use]
pub fn rates(stretch: &[f64], load: f64, capacity_rps: f64) -> Vec<f64> {
    let Some(ratio) = burstiness(stretch) else { return Vec::new() };
    let load = load.min(BUSIEST / ratio);
    let mean = stretch.iter().sum::<f64>() / stretch.len() as f64;
    stretch.iter().map(|count| count / mean * load * capacity_rps).collect()
}

/// Busiest over mean; `None` of silence.
fn burstiness(stretch: &[f64]) -> Option<f64> {
    let mean = stretch.iter().sum::<f64>() / stretch.len() as f64;
    let busiest = stretch.iter().copied().fold(0.0, f64::max);
    (mean > 0.0).then(|| busiest / mean)
}

/// Result of one run without a crowd.
#[derive(Clone, Debug, PartialEq)]
pub struct CalmRun {
    /// Of which trace.
    pub trace: String,
    /// The mean load that was wanted, over the capacity.
    pub load: f64,
    /// Stages that decided.
    pub composition: Composition,
    /// Length, seconds.
    pub length_s: f64,
    /// The mean that was sent, requests a second.
    pub mean_rps: f64,
    /// The busiest second that was sent, requests a second.
    pub busiest_rps: f64,
    /// Plans that raised the alarm.
    pub alarms: u64,
    /// Requests that the gateway refused.
    pub refused: u64,
    /// Verdicts in their order, a change each, from the first on that says more than that too little is known
    /// yet.
    pub verdicts: Vec<String>,
    /// Use of the origin's time.
    pub useful: Useful,
    /// The load generator could not keep up.
    pub is_saturated: bool,
}

impl CalmRun {
    /// Changes of the verdict.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.verdicts.len().saturating_sub(1)
    }

    /// Load of the busiest second by what a page really cost in this run; a shared machine may be slower than
    /// when its capacity was measured.
    #[must_use]
    pub fn busiest_load(&self) -> f64 {
        self.busiest_rps * self.useful.processor_ms.unwrap_or(0.0) / 1e3
    }

    /// Returns whether it was calm: what was sent fitted into the origin in every second, and the generator
    /// sent it in time.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.busiest_load() <= 1.0 && !self.is_saturated
    }

    /// Returns whether all bars are met.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let changes_max = (self.length_s / 60.0).ceil() as usize;
        self.alarms == 0 && self.refused == 0 && self.changes() <= changes_max
    }
}

/// The table, and how many runs were quiet.
#[must_use]
pub fn text(runs: &[CalmRun]) -> String {
    let mut text = String::from("Calm stretches: nothing may happen\n\n");
    let head = ["trace", "load", "mean", "busiest", "busy", "alarms", "refused", "changes", "quiet"];
    line(&mut text, head, "verdicts");
    for run in runs {
        let quiet = match (run.is_calm(), run.is_quiet()) {
            (_, true) => "yes",
            (true, false) => "NO",
            (false, false) => "not calm",
        };
        let numbers = [
            run.load.to_string(),
            format!("{:.0}/s", run.mean_rps),
            format!("{:.2}", run.busiest_load()),
            format!("{:.2}", run.useful.busy),
            run.alarms.to_string(),
            run.refused.to_string(),
            run.changes().to_string(),
        ];
        let [load, mean, busiest, busy, alarms, refused, changes] = numbers.each_ref().map(String::as_str);
        let row = [run.trace.as_str(), load, mean, busiest, busy, alarms, refused, changes, quiet];
        line(&mut text, row, &run.verdicts.join(", "));
    }
    let calm: Vec<&CalmRun> = runs.iter().filter(|run| run.is_calm()).collect();
    let quiet = calm.iter().filter(|run| run.is_quiet()).count();
    let (alarms, refused): (u64, u64) =
        calm.iter().fold((0, 0), |(alarms, refused), run| (alarms + run.alarms, refused + run.refused));
    let minutes: f64 = calm.iter().map(|run| run.length_s / 60.0).sum();
    let changes = calm.iter().map(|run| run.changes()).sum::<usize>() as f64 / minutes.max(f64::EPSILON);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n{quiet} of {} calm stretches were quiet: {alarms} alarms, {refused} refused, {changes:.2} changes of the verdict a minute",
        calm.len()
    );
    text
}

fn line(text: &mut String, row: [&str; 9], verdicts: &str) {
    let [trace, load, mean, busiest, busy, alarms, refused, changes, quiet] = row;
    let line = format!(
        "{trace:<46} {load:>4} {mean:>6} {busiest:>8} {busy:>5} {alarms:>7} {refused:>8} {changes:>8} {quiet:>9}  {verdicts}"
    );
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(refused: u64, verdicts: &[&str], processor_ms: f64) -> CalmRun {
        CalmRun {
            trace: "a day".to_owned(),
            load: 0.5,
            composition: Composition::Default,
            length_s: 30.0,
            mean_rps: 100.0,
            busiest_rps: 180.0,
            alarms: 0,
            refused,
            verdicts: verdicts.iter().map(|&verdict| verdict.to_owned()).collect(),
            useful: Useful { busy: 0.5, in_time: 1.0, processor_ms: Some(processor_ms) },
            is_saturated: false,
        }
    }

    #[test]
    fn the_burstiest_stretch_that_fits_is_taken() {
        let counts = [10.0, 10.0, 10.0, 10.0, 8.0, 13.0, 10.0, 9.0, 40.0, 1.0, 1.0, 1.0];
        assert_eq!(stretch(&counts, 4), Some(&counts[4..8]));
        // Nothing fits: the least bursty.
        assert_eq!(stretch(&[0.0, 9.0, 1.0, 0.0, 0.0, 0.0, 5.0, 5.0], 4), Some(&[0.0, 0.0, 5.0, 5.0][..]));
        assert_eq!((stretch(&counts, 13), stretch(&[0.0; 8], 4)), (None, None));
    }

    #[test]
    fn a_stretch_is_scaled_to_its_load_or_until_its_busiest_second_fits() {
        let scaled = rates(&[1.0, 3.0, 2.0], 0.25, 200.0);
        assert_eq!(scaled, [25.0, 75.0, 50.0]);
        let busiest = rates(&[0.0, 0.0, 9.0], 0.7, 200.0)[2];
        assert!((busiest - BUSIEST * 200.0).abs() < 1e-9, "{busiest}");
    }

    #[test]
    fn one_change_a_minute_is_quiet_and_a_slow_machine_is_not_calm() {
        assert!(run(0, &["calm", "surge_ok"], 5.0).is_quiet());
        assert!(!run(0, &["calm", "surge_ok", "calm"], 5.0).is_quiet() && !run(1, &["calm"], 5.0).is_quiet());
        assert!(run(0, &[], 5.0).is_calm() && !run(0, &[], 6.0).is_calm());
        let runs =
            [run(0, &["calm"], 5.0), run(2, &["calm", "popular", "calm"], 5.0), run(7, &["popular"], 6.0)];
        insta::assert_snapshot!(text(&runs));
    }
}
