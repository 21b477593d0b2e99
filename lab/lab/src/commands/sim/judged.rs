//! Findings of a scenario's runs.

use crate::scenario::{Scenario, Sheet};
use flashweir_load::report::Point;
use flashweir_sim::request::RunOutcome;

/// Findings of the runs.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) scenario: &'a Scenario,
    /// The file's name, for people.
    pub(super) file: String,
    pub(super) sheet: Sheet,
    pub(super) outcomes: Vec<RunOutcome>,
}

impl Judged<'_> {
    /// Width of the bins, seconds.
    pub(super) fn bin_s(&self) -> f64 {
        self.outcomes.first().map_or(1.0, |outcome| outcome.bin.as_secs_f64())
    }

    /// The mean over all runs that have a value, bin by bin up to the end of the schedule.
    pub(super) fn over_time(&self, value: impl Fn(&RunOutcome, usize) -> Option<f64>) -> Vec<Point> {
        let bin_s = self.bin_s();
        // A run has fewer bins than SIM_SERIES_BINS: it was checked.
        let bins = (self.scenario.length().as_secs_f64() / bin_s) as usize;
        let mean = |place: usize| {
            let values: Vec<f64> = self.outcomes.iter().filter_map(|outcome| value(outcome, place)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        (0..bins).map(|place| ((place as f64 + 0.5) * bin_s, mean(place))).collect()
    }
}
