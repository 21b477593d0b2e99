//! NEWS-F14: NEWS against the best limit a person could have set.
//!
//! The best of the paper's four limits, 60/s, is the lowest of them, and nothing says that a lower one is not
//! better. So the search goes on beyond the edge of the paper's limits, within what could be set at all.

use super::plant::{AS_RUN, CROWD_PER_S, Mode, NEWS_MODES, QUIET_PER_S, notes};
use super::runs::{Runs, Stretch};
use super::table_one;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::news::NewsOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F14",
    title: "NEWS and the best static limit",
    paper: "Figure 14 and §7.3: the fastest tenth 11 % slower than with a static limit of 60/s, the best of 60, 80, 100 and \
            120/s, and half its rejections",
    run,
};

/// The limits of the paper's Table I, and its best.
const PAPERS: [u32; 4] = [60, 80, 100, 120];
const PAPERS_BEST: u32 = PAPERS[0];
const BEST: Mode = Mode::Static(PAPERS_BEST);
/// Beyond the paper's limits.
const STEP_PER_S: u32 = 20;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &table_one::MODES, |_| ())?;
    let by_limit = searched(laboratory)?;
    let (fastest, rejected) = (runs.fastest_kbps(Stretch::Crowd), runs.rejected_percent());
    let (best_fastest, best_rejected) = (runs.mean(BEST, &fastest), runs.mean(BEST, &rejected));
    let slower = |outcome: &NewsOutcome| fastest(outcome).map(|rate| (1.0 - rate / best_fastest) * 100.0);
    let part = |outcome: &NewsOutcome| rejected(outcome).map(|percent| percent / best_rejected);
    let near = |by| Rule::Near { mode: AS_RUN.to_owned(), by };
    let mut rows = vec![
        runs.row("fastest tenth slower than static 60, %", Some(11.0), near(5.0), &NEWS_MODES, slower),
        runs.row("rejections, of static 60's", Some(0.5), near(0.1), &NEWS_MODES, part),
    ];
    rows.extend(by_limit.iter().map(|(limit, values)| Row {
        what: format!("static {limit}: fastest kb/s"),
        paper: None,
        ours: values.spread().map(|spread| (BEST.name(), spread)).into_iter().collect(),
        rule: Rule::Reported,
    }));
    let best = by_limit.iter().find(|(limit, _)| *limit == PAPERS_BEST).map(|(_, values)| values.clone());
    let best = best.unwrap_or_default();
    let mut shapes = vec![Shape::new(
        "no other static limit gives the fastest tenth a higher rate than 60/s",
        by_limit.iter().filter(|(limit, _)| *limit != PAPERS_BEST).map(|(limit, values)| {
            values.over(&best).at_most(1.0).named(format!("{limit}/s over {PAPERS_BEST}/s"))
        }),
    )];
    for mode in NEWS_MODES.into_iter().filter(|mode| *mode != Mode::Paper) {
        let name = mode.name();
        let over_best = |value: &dyn Fn(&NewsOutcome) -> Option<f64>| {
            runs.seeds(mode, value).over(&runs.seeds(BEST, value))
        };
        let slower = over_best(&fastest).map(|part| (1.0 - part) * 100.0);
        shapes.push(Shape::new(format!("{name}: at most 15 % slower"), [slower.at_most(15.0).named("%")]));
        shapes.push(Shape::new(
            format!("{name}: at most 0.7 of the rejections"),
            [over_best(&rejected).at_most(0.7)],
        ));
    }
    let lines =
        [BEST, Mode::Scoreboard, Mode::Repaired].map(|mode| (mode.name(), runs.fastest_over_time(mode)));
    let plot = Plot {
        title: "Rate of the fastest tenth, NEWS and a static limit of 60/s",
        x_label: "seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    let mut notes = notes(laboratory.options());
    notes.push(format!(
        "Limits are searched from the paper's four on, in steps of {STEP_PER_S}/s beyond the lowest or the highest while that is the best, as \
         long as they are above the {QUIET_PER_S}/s of the quiet and below the {CROWD_PER_S}/s of the crowd. The best limit is \
         that with the highest rate of the fastest tenth, as in the paper, whatever it rejects."
    ));
    plot.finding(rows, shapes, Claim::Shape, notes)
}

/// The limits that were tried, ascending, and the rate of the fastest tenth with each of them.
fn searched(laboratory: &Laboratory) -> Result<Vec<(u32, SeedValues)>, ExperimentError> {
    let mut limits = PAPERS.to_vec();
    loop {
        let modes: Vec<Mode> = limits.iter().map(|&limit| Mode::Static(limit)).collect();
        let runs = Runs::new(laboratory, &modes, |_| ())?;
        let fastest = runs.fastest_kbps(Stretch::Crowd);
        let by_limit: Vec<(u32, f64)> =
            limits.iter().map(|&limit| (limit, runs.mean(Mode::Static(limit), &fastest))).collect();
        let Some(next) = beyond(&by_limit) else {
            return Ok(limits
                .iter()
                .map(|&limit| (limit, runs.seeds(Mode::Static(limit), &fastest)))
                .collect());
        };
        limits.push(next);
        limits.sort_unstable();
    }
}

/// The limit beyond the best of some, ascending, where that is the lowest or the highest and the next can be
/// set.
fn beyond(by_limit: &[(u32, f64)]) -> Option<u32> {
    let (best, _) = *by_limit.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let (lowest, highest) = (by_limit.first()?.0, by_limit.last()?.0);
    let next = match best {
        _ if best == lowest => best.checked_sub(STEP_PER_S)?,
        _ if best == highest => best.checked_add(STEP_PER_S)?,
        _ => return None,
    };
    Some(next).filter(|&next| f64::from(next) > QUIET_PER_S && f64::from(next) < CROWD_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a limit at an edge is passed until it is inside, or the next cannot be set. Without `beyond`
    /// the paper's four would be all.
    #[test]
    fn the_search_goes_on_beyond_the_best_at_an_edge() {
        let limits_searched = |best: u32| {
            let rate = |limit: u32| (limit, -f64::from(limit.abs_diff(best)));
            let mut limits = PAPERS.map(rate).to_vec();
            while let Some(next) = beyond(&limits) {
                limits.push(rate(next));
                limits.sort_unstable_by_key(|(limit, _)| *limit);
            }
            limits.into_iter().map(|(limit, _)| limit).collect::<Vec<_>>()
        };
        assert_eq!(limits_searched(80), PAPERS);
        assert_eq!(limits_searched(60), [40, 60, 80, 100, 120]);
        assert_eq!(limits_searched(140), [60, 80, 100, 120, 140, 160]);
        // Below the quiet, or above the crowd, nothing is left to be limited.
        assert_eq!(limits_searched(0).first(), Some(&40));
        assert_eq!(limits_searched(400).last(), Some(&200));
        assert_eq!(beyond(&[]), None);
    }
}
