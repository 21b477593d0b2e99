//! The records of all runs, and what is read from them.

use super::record::Record;
use super::scene::{Protection, Run, Scene};
use crate::{Row, Rule, Spread};
use flashweir_report::Point;

/// The records of all runs that were made.
#[derive(Clone, Debug, Default)]
pub struct Results {
    records: Vec<(Run, Record)>,
}

impl Results {
    /// Adds what a run showed.
    pub fn add(&mut self, run: Run, record: Record) {
        self.records.push((run, record));
    }

    /// Whether a run was made already.
    #[must_use]
    pub fn has(&self, run: &Run) -> bool {
        self.records.iter().any(|(made, _)| made == run)
    }

    /// The records of all rounds of a scene under a protection.
    pub(super) fn of<'a>(
        &'a self,
        scene: &'a Scene,
        protection: &'a Protection,
    ) -> impl Iterator<Item = &'a Record> {
        let is_it = move |run: &Run| run.scene == *scene && run.protection == *protection;
        self.records.iter().filter(move |(run, _)| is_it(run)).map(|(_, record)| record)
    }

    /// A value over the rounds; rounds that have none are left out.
    pub(super) fn spread(
        &self,
        scene: &Scene,
        protection: &Protection,
        value: impl Fn(&Record) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(self.of(scene, protection).filter_map(value))
    }

    /// The mean over the rounds; not a number where there is none, which fails every comparison.
    pub(super) fn mean(
        &self,
        scene: &Scene,
        protection: &Protection,
        value: impl Fn(&Record) -> Option<f64>,
    ) -> f64 {
        self.spread(scene, protection, value).map_or(f64::NAN, |spread| spread.mean)
    }

    pub(super) fn row(
        &self,
        what: impl Into<String>,
        paper: Option<f64>,
        (scene, protections): (&Scene, &[Protection]),
        value: impl Fn(&Record) -> Option<f64>,
    ) -> Row {
        let ours = protections
            .iter()
            .filter_map(|protection| Some((protection.name(), self.spread(scene, protection, &value)?)));
        Row { what: what.into(), paper, ours: ours.collect(), rule: Rule::Told }
    }

    /// The first round, second by second.
    pub(super) fn over_time(
        &self,
        scene: &Scene,
        protection: &Protection,
        value: impl Fn(&super::Second) -> Option<f64>,
    ) -> Vec<Point> {
        let first = self.of(scene, protection).next();
        let seconds = first.into_iter().flat_map(|record| &record.seconds);
        seconds.zip(0u32..).map(|(second, at)| (f64::from(at), value(second))).collect()
    }

    /// What of the machine was too slow in any run of a scene.
    pub(super) fn doubts(&self, scene: &Scene) -> Vec<String> {
        let runs = self.records.iter().filter(|(run, _)| run.scene == *scene);
        let doubts = runs.flat_map(|(run, record)| {
            record.doubts.iter().map(|doubt| format!("**Doubtful**, {}: {doubt}", run.protection.describe()))
        });
        doubts.collect()
    }
}
