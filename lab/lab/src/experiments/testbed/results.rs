//! The records of all runs, and what is read from them.

use super::record::Record;
use super::scene::{Protection, Scene, TestbedRun};
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Row, Rule, Spread};
use flashweir_load::report::Point;

/// The records of all runs that were made.
#[derive(Clone, Debug, Default)]
pub struct Results {
    records: Vec<(TestbedRun, Record)>,
}

impl Results {
    /// Adds what a run showed.
    pub fn add(&mut self, run: TestbedRun, record: Record) {
        self.records.push((run, record));
    }

    /// Returns whether a run was made already.
    #[must_use]
    pub fn has(&self, run: &TestbedRun) -> bool {
        self.records.iter().any(|(made, _)| made == run)
    }

    pub(super) fn in_scene<'a>(&'a self, scene: &'a Scene) -> InScene<'a> {
        InScene { results: self, scene }
    }
}

/// The records of one scene.
#[derive(Clone, Copy)]
pub(super) struct InScene<'a> {
    results: &'a Results,
    scene: &'a Scene,
}

impl<'a> InScene<'a> {
    /// A value of each round, by its seed; no rounds of a protection that was not run.
    pub(super) fn seeds(
        &self,
        protection: &Protection,
        value: impl Fn(&Record) -> Option<f64>,
    ) -> SeedValues {
        SeedValues::of(self.of(protection).map(|(seed, record)| (seed, value(record))))
    }

    /// The mean over the rounds that have a value, for rows, charts and the search for the best; not a number
    /// where none has.
    pub(super) fn mean(&self, protection: &Protection, value: impl Fn(&Record) -> Option<f64>) -> f64 {
        self.spread(protection, value).map_or(f64::NAN, |spread| spread.mean)
    }

    pub(super) fn row(
        &self,
        what: impl Into<String>,
        paper: Option<f64>,
        protections: &[Protection],
        value: impl Fn(&Record) -> Option<f64>,
    ) -> Row {
        let ours = protections
            .iter()
            .filter_map(|protection| Some((protection.name(), self.spread(protection, &value)?)));
        Row { what: what.into(), paper, ours: ours.collect(), rule: Rule::Reported }
    }

    /// The first round, second by second.
    pub(super) fn over_time(
        &self,
        protection: &Protection,
        value: impl Fn(&super::Second) -> Option<f64>,
    ) -> Vec<Point> {
        let seconds = self.first(protection).into_iter().flat_map(|record| &record.seconds);
        seconds.zip(0u32..).map(|(second, at)| (f64::from(at), value(second))).collect()
    }

    /// The fastest tenth in the first round, reading by reading; a line for each protection.
    pub(super) fn fastest_tenth(&self, protections: &[Protection]) -> Plot {
        let line = |protection: &Protection| {
            let readings = self.first(protection).into_iter().flat_map(|record| &record.fastest);
            (protection.name(), readings.map(|it| (it.at_s, Some(it.kbps))).collect())
        };
        Plot {
            title: "The fastest tenth of the responses",
            x_label: "seconds",
            y_label: "kb/s",
            lines: protections.iter().map(line).collect(),
            onset: Some(self.scene.onset_s() as f64),
        }
    }

    /// Parts of the machine that were too slow in any run.
    pub(super) fn doubts(&self) -> Vec<String> {
        let runs = self.results.records.iter().filter(|(run, _)| run.scene == *self.scene);
        let doubts = runs.flat_map(|(run, record)| {
            record.doubts.iter().map(|doubt| format!("**Doubtful**, {}: {doubt}", run.protection.describe()))
        });
        doubts.collect()
    }

    /// A value over the rounds; none where no round has one.
    fn spread(&self, protection: &Protection, value: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        self.seeds(protection, value).spread()
    }

    fn first(&self, protection: &Protection) -> Option<&'a Record> {
        self.of(protection).next().map(|(_, record)| record)
    }

    /// The seeds and records of all rounds under a protection.
    fn of(&self, protection: &Protection) -> impl Iterator<Item = (u64, &'a Record)> {
        let Self { results, scene } = *self;
        let is_it = move |run: &TestbedRun| run.scene == *scene && run.protection == *protection;
        results.records.iter().filter(move |(run, _)| is_it(run)).map(|(run, record)| (run.seed, record))
    }
}
