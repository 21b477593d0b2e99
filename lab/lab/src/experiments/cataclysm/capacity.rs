//! CAT-CAP: what a server carries.

use super::plant::notes;
use super::runs::{Curve, Load, Measured};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape, Spread};
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-CAP",
    title: "What one server carries within the target",
    paper: "§5: about 60 requests/s at a 95th percentile of response times of 1 s",
    run,
};

/// Offered per second.
const RATES: [f64; 9] = [30.0, 45.0, 52.0, 56.0, 58.0, 60.0, 61.0, 62.0, 63.0];
const CURVES: [Curve; RATES.len()] = [
    &[(0, RATES[0])],
    &[(0, RATES[1])],
    &[(0, RATES[2])],
    &[(0, RATES[3])],
    &[(0, RATES[4])],
    &[(0, RATES[5])],
    &[(0, RATES[6])],
    &[(0, RATES[7])],
    &[(0, RATES[8])],
];
/// Long: near what a server carries, response times vary for minutes.
const LENGTH_S: u64 = 3_000;
const NONE: &str = "none";
const TARGET_S: f64 = 1.0;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds: Vec<u64> = (0..u64::from(options.seeds)).map(|place| options.seed + place).collect();
    let load =
        |curve, seed| Load { mode: None, servers: 1, curves: [curve, &[], &[]], length_s: LENGTH_S, seed };
    let loads: Vec<Load> =
        CURVES.iter().flat_map(|&curve| seeds.iter().map(move |&seed| load(curve, seed))).collect();
    let measured = laboratory.run(&loads)?;
    let of_rate: Vec<&[Arc<Measured>]> = measured.chunks(seeds.len()).collect();
    let late_s = |measured: &Measured| measured.quantile_s(0.95);
    let capacities = (0..seeds.len()).map(|seed| {
        let crossed = crossing(of_rate.iter().zip(RATES).map(|(runs, rate)| (rate, late_s(&runs[seed]))));
        (seeds[seed], crossed)
    });
    let capacity = SeedValues::of(capacities);
    let at_rate: Vec<SeedValues> = of_rate
        .iter()
        .map(|runs| SeedValues::of(seeds.iter().copied().zip(runs.iter().map(|run| Some(late_s(run))))))
        .collect();
    let column =
        |spread: Option<Spread>| spread.map(|spread| (NONE.to_owned(), spread)).into_iter().collect();
    let rule = Rule::Within { mode: NONE.to_owned(), part: 0.05 };
    let mut rows =
        vec![Row { what: "capacity/s".to_owned(), paper: Some(60.0), ours: column(capacity.spread()), rule }];
    rows.extend(RATES.iter().enumerate().map(|(place, rate)| Row {
        what: format!("95th percentile at {rate}/s, s"),
        paper: None,
        ours: column(at_rate[place].spread()),
        rule: Rule::Reported,
    }));
    let shapes = vec![
        Shape::new(
            "response times never fall as more is offered",
            [SeedValues::smallest_step(&at_rate).at_least(0.0).named("smallest step, s")],
        ),
        Shape::new(
            "at three quarters of the capacity the 95th percentile is below a quarter of the target",
            [at_rate[1].clone().below(TARGET_S / 4.0)],
        ),
        Shape::new("the target is crossed between 56/s and 63/s", [capacity.between(RATES[3], RATES[8])]),
    ];
    let mean = |values: &SeedValues| values.spread().map_or(f64::NAN, |spread| spread.mean);
    let means: Vec<f64> = at_rate.iter().map(mean).collect();
    let points = RATES.iter().zip(&means).map(|(&rate, &late_s)| (rate, Some(late_s)));
    let plot = Plot {
        title: "Response times of one server",
        x_label: "offered/s",
        y_label: "95th percentile, seconds",
        lines: vec![
            (NONE.to_owned(), points.collect()),
            ("the target".to_owned(), vec![(RATES[0], Some(TARGET_S)), (RATES[8], Some(TARGET_S))]),
        ],
        onset: None,
    };
    let mut notes = notes(options, options.seeds);
    notes.push(format!(
        "Runs of {LENGTH_S} s; the capacity is where a straight line between two rates crosses 1 s."
    ));
    plot.finding(rows, shapes, Claim::Shape, notes)
}

/// The rate at which the target is crossed, by a straight line between the last rate below and the next; none
/// where it is not crossed between two rates.
fn crossing(points: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let points: Vec<(f64, f64)> = points.collect();
    let pairs = points.windows(2).rev().map(|pair| (pair[0], pair[1]));
    let (low, high) =
        pairs.into_iter().find(|(low, _)| low.1 <= TARGET_S).filter(|(_, high)| high.1 > TARGET_S)?;
    let part = (TARGET_S - low.1) / (high.1 - low.1);
    Some(low.0 + part * (high.0 - low.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_crossed_on_a_straight_line() {
        let crossed = crossing([(50.0, 0.2), (60.0, 0.5), (62.0, 1.5)].into_iter());
        assert_eq!(crossed, Some(61.0));
        assert_eq!(crossing([(50.0, 2.0), (60.0, 3.0)].into_iter()), None);
        // Beyond the highest rate nothing is known.
        assert_eq!(crossing([(50.0, 0.2), (60.0, 0.5)].into_iter()), None);
    }
}
