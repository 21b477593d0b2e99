//! Table of the visits' outcomes, and its two files.

use crate::stage::{Stage, Visit};
use crate::tuning::Contestant;
use flashweir_load::trials::comparison::{
    Cell, Comparison, ComparisonOutcome, OriginKind, Range, Row, Scene, Setup,
};
use serde_json::json;
use std::fs;
use std::path::Path;

/// A cell of the table.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    row: usize,
    pub(crate) column: usize,
}

/// The outcomes by row and column, one for each round.
pub(crate) struct Results {
    scenes: Vec<Scene>,
    outcomes: Vec<Vec<Vec<ComparisonOutcome>>>,
    capacities_rps: Vec<f64>,
}

impl Results {
    pub(crate) fn new(scenes: &[Scene], columns: usize) -> Self {
        let outcomes = vec![vec![Vec::new(); columns]; scenes.len()];
        Self { scenes: scenes.to_vec(), outcomes, capacities_rps: Vec::new() }
    }

    pub(crate) fn cells(&self) -> usize {
        self.outcomes.iter().map(Vec::len).sum()
    }

    /// Scene by scene; every other round backwards, so that other work of the machine falls on all.
    pub(crate) fn order(&self, round: usize) -> Vec<Place> {
        let columns = |(row, columns): (usize, &Vec<Vec<ComparisonOutcome>>)| {
            (0..columns.len()).map(move |column| Place { row, column }).collect::<Vec<_>>()
        };
        let mut places: Vec<Place> = self.outcomes.iter().enumerate().flat_map(columns).collect();
        if round % 2 == 1 {
            places.reverse();
        }
        places
    }

    pub(crate) fn scene(&self, place: Place) -> &Scene {
        &self.scenes[place.row]
    }

    pub(crate) fn add(&mut self, place: Place, visit: Visit) {
        if self.scene(place).origin == OriginKind::CpuBound {
            self.capacities_rps.push(visit.capacity_rps);
        }
        self.outcomes[place.row][place.column].push(visit.outcome);
    }

    pub(crate) fn comparison(
        &self,
        contestants: Vec<Contestant>,
        machine: String,
        placement: String,
        stage: &Stage,
        rounds: usize,
        crowd_s: u64,
    ) -> Comparison {
        let row = |(scene, outcomes): (&Scene, &Vec<Vec<ComparisonOutcome>>)| Row {
            cells: outcomes.iter().map(|rounds| Cell::of(rounds)).collect(),
            ..Row::new(scene)
        };
        Comparison {
            setup: Setup {
                machine,
                placement,
                capacity_rps: stage.capacity_rps(OriginKind::CpuBound),
                capacity_rps_range: Range::of(&self.capacities_rps),
                rounds,
                crowd_s,
            },
            columns: contestants.into_iter().map(Contestant::into_column).collect(),
            rows: self.scenes.iter().zip(&self.outcomes).map(row).collect(),
        }
    }
}

/// `comparison.md`, and `comparison.json` with the same numbers and the judgements.
pub(crate) fn write(directory: &Path, comparison: &Comparison, page: &str) {
    fs::create_dir_all(directory).expect("a directory that can be made");
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("a writable directory");
    write("comparison.md", page);
    let json = json!({ "comparison": comparison, "judgements": comparison.judgements() });
    write("comparison.json", &format!("{json:#}\n"));
}
