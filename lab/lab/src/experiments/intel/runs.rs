//! The runs of an experiment, by rate, and what is read from them.

use super::server::{Load, Measured, Spacing, closed_form_rps};
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule, Spread};
use flashweir_load::report::Point;
use std::sync::Arc;
use std::time::Duration;

/// Offered per second in the paper's Table 1: a light load, the critical one, 160 % and 225 %.
pub(super) const TABLE_RATES: [f64; 4] = [LIGHT, CRITICAL, HIGH, HIGHEST];
pub(super) const LIGHT: f64 = 32.58;
pub(super) const CRITICAL: f64 = 43.97;
pub(super) const HIGH: f64 = 71.42;
pub(super) const HIGHEST: f64 = 99.55;
/// Offered per second in the figures: those of the table, and some between for the lines.
pub(super) const EVEN_RATES: [f64; 8] = [LIGHT, 38.0, CRITICAL, 45.0, 50.0, 60.0, HIGH, HIGHEST];
/// The paper's range under a self-similar load, with the rates it names: 38, 45, 70 and 85.
pub(super) const SELF_SIMILAR_RATES: [f64; 7] = [27.0, 32.0, 38.0, 45.0, 55.0, 70.0, 85.0];
/// Sessions of at least ten slots: chosen before any of these runs.
pub(super) const SELF_SIMILAR: Spacing = Spacing::SelfSimilar { shortest: Duration::from_secs(1) };
/// Half of the sessions send one request only: the least deep waves of this shape.
pub(super) const SHALLOW: Spacing = Spacing::SelfSimilar { shortest: Duration::from_millis(30) };
/// Maximum of a value that is "substantially less" in a paper, as a part of the value without control.
pub(super) const SUBSTANTIALLY_LESS: f64 = 0.75;
/// No control.
pub(super) const NONE: &str = "none";
/// The column of the closed form.
const CLOSED_FORM: &str = "closed form";
/// With fewer, self-similar loads tell nothing.
const SEEDS_LEAST: u32 = 6;

pub(super) struct Runs {
    spacing: Spacing,
    first_seed: u64,
    by_rate: Vec<(f64, Vec<Arc<Measured>>)>,
}

impl Runs {
    pub(super) fn new(
        laboratory: &Laboratory,
        spacing: Spacing,
        rates_rps: &[f64],
    ) -> Result<Self, ExperimentError> {
        let seeds = || seeds(laboratory);
        let of = |rate_rps| seeds().map(move |seed| Load { spacing, rate_rps, seed });
        let loads: Vec<Load> = rates_rps.iter().copied().flat_map(of).collect();
        let measured = laboratory.run(&loads)?;
        let by_rate = rates_rps.iter().copied().zip(measured.chunks(seeds().count()).map(<[_]>::to_vec));
        Ok(Self { spacing, first_seed: laboratory.options().seed, by_rate: by_rate.collect() })
    }

    /// A value of each seed at a rate; no seeds where there were no runs.
    pub(super) fn seeds(&self, rate_rps: f64, value: impl Fn(&Measured) -> f64) -> SeedValues {
        let runs = self.by_rate.iter().find(|(rate, _)| *rate == rate_rps);
        let measured = runs.into_iter().flat_map(|(_, measured)| measured);
        SeedValues::of((self.first_seed..).zip(measured.map(|measured| Some(value(measured)))))
    }

    /// A value over the seeds at a rate; none where there were no runs.
    pub(super) fn spread(&self, rate_rps: f64, value: impl Fn(&Measured) -> f64) -> Option<Spread> {
        self.seeds(rate_rps, value).spread()
    }

    /// The mean over the seeds, for charts; not a number where there were no runs.
    fn mean(&self, rate_rps: f64, value: impl Fn(&Measured) -> f64) -> f64 {
        self.spread(rate_rps, value).map_or(f64::NAN, |spread| spread.mean)
    }

    pub(super) fn row(
        &self,
        what: &str,
        rate_rps: f64,
        paper: Option<f64>,
        rule: Rule,
        value: impl Fn(&Measured) -> f64,
    ) -> Row {
        let ours = self.spread(rate_rps, value).map(|spread| (NONE.to_owned(), spread));
        Row { what: format!("{what} at {rate_rps}/s"), paper, ours: ours.into_iter().collect(), rule }
    }

    /// Adds these runs' values to other runs' row as a separate column.
    pub(super) fn beside(&self, mut row: Row, rate_rps: f64, value: impl Fn(&Measured) -> f64) -> Row {
        let column = match self.spacing {
            Spacing::Even => "even spacing",
            Spacing::SelfSimilar { .. } => "shallow waves",
        };
        row.ours.extend(self.spread(rate_rps, value).map(|spread| (column.to_owned(), spread)));
        row
    }

    /// A row of OK responses, with the closed form beside.
    pub(super) fn ok_row(&self, rate_rps: f64, paper: Option<f64>, rule: Rule) -> Row {
        let mut row = self.row("OK/s", rate_rps, paper, rule, |measured| measured.ok_rps);
        row.ours.extend(Spread::of([closed_form_rps(rate_rps)]).map(|it| (CLOSED_FORM.to_owned(), it)));
        row
    }

    /// A chart over the offered rate: ours, the paper's points and what else is given.
    pub(super) fn plot(
        &self,
        title: &'static str,
        y_label: &'static str,
        paper: &[(f64, f64)],
        value: impl Fn(&Measured) -> f64,
    ) -> Plot {
        let ours = self.by_rate.iter().map(|(rate, _)| (*rate, Some(self.mean(*rate, &value))));
        let paper = paper.iter().map(|&(rate, value)| (rate, Some(value)));
        let lines = vec![(NONE.to_owned(), ours.collect()), ("the paper's".to_owned(), paper.collect())];
        Plot { title, x_label: "offered/s", y_label, lines, onset: None }
    }

    /// OK responses by the closed form at the same rates.
    pub(super) fn closed_form(&self) -> (String, Vec<Point>) {
        let points = self.by_rate.iter().map(|(rate, _)| (*rate, Some(closed_form_rps(*rate))));
        (CLOSED_FORM.to_owned(), points.collect())
    }

    /// Differences between these runs and the paper's.
    pub(super) fn notes(&self, laboratory: &Laboratory) -> Vec<String> {
        let model = match self.spacing {
            Spacing::Even => {
                "Fitted to these very measurements: the work of a request (22.6 ms, exponential) to the processor at \
                 32.58/s, that of a refusal (4 ms) to the OK responses at 71.42/s and 99.55/s, the queue (256) to its \
                 mean lengths and the 30 in service to the response times there, and the network's delay (60 ms each \
                 way) to the response time at 32.58/s. So these rows check the simulator, and no value may be \
                 claimed as matched, only shapes."
            }
            Spacing::SelfSimilar { .. } => {
                "The server was fitted to evenly spaced loads alone (INTEL-T1); what is judged here was left out. The \
                 arrivals are ours, as the paper names only the process: M/G/∞ with slots of 0.1 s and Pareto sessions \
                 (shape 1.4, hence a Hurst parameter of 0.8), each run stretched in time to the very mean rate. \
                 Sessions last 1 s at least, which was chosen before any of these runs; shallow waves, told beside, are \
                 those of sessions from 0.03 s."
            }
        };
        let seeds = seeds(laboratory).count();
        vec![
            model.to_owned(),
            "Each run is 300 s, as in the paper, and begins with an empty server; lengths of quiet and crowd make no \
             difference here."
                .to_owned(),
            format!("{seeds} seeds, from {}; the paper tells of one run.", laboratory.options().seed),
        ]
    }
}

/// At the critical rate there is no single answer, so none is judged.
pub(super) const CRITICAL_NOTE: &str = "At 43.97/s the server is offered 99.4 % of what it can do: its queue grows for \
     all the 300 s, differently for each seed (the brackets), and the model misses the paper's. It is told, not judged.";

/// The seeds of every experiment: six at least, for self-similar loads.
pub(super) fn seeds(laboratory: &Laboratory) -> impl Iterator<Item = u64> + use<> {
    let options = laboratory.options();
    let first = options.seed;
    (0..u64::from(options.seeds.max(SEEDS_LEAST))).map(move |n| first + n)
}

/// Every seed lies within this part of the paper's value.
pub(super) fn within(part: f64) -> Rule {
    Rule::Within { mode: NONE.to_owned(), part }
}
