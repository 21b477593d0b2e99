//! Goal: no request is refused while nothing is short, whatever its time. Method: the table of calm services, behind all stages of the
//! gateway, each kind of request with its own URL and all on one, watched by the checker that knows the origin.

use super::calm_table::{ROWS, Row};
use super::mixture::Names;
use flashweir_sim::request::Outcome;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

fn runs(row: &Row) -> impl Iterator<Item = (String, Outcome)> {
    [Names::Known, Names::OneUrl].into_iter().flat_map(move |names| {
        SEEDS.map(move |seed| (format!("{} {names:?} seed {seed}", row.name), row.run(names, None, seed)))
    })
}

/// All polls of a page's visitors arrive in one second of a cold start: until the first of them are found to be long, pages wait behind them.
const ALL_AT_ONCE: &str = "300-at-once-of-55s";

#[test]
fn services_in_calm_are_not_refused() {
    for (name, run) in ROWS.iter().filter(|row| row.name != ALL_AT_ONCE).flat_map(runs) {
        let report = run.calm.as_ref().expect("the check was asked for");
        assert_eq!(run.totals().shed_total(), 0, "{name}: {:?}", report.problem());
        assert_eq!(report.problem(), None, "{name}");
    }
}

#[test]
fn pages_behind_polls_of_a_cold_start_are_served_after_seconds() {
    let row = ROWS.iter().find(|row| row.name == ALL_AT_ONCE).expect("a row of the table");
    for seed in SEEDS {
        let run = row.run(Names::Known, None, seed);
        let pages = &run.classes[0].totals;
        assert!(10 * pages.shed_total() < pages.offered, "seed {seed}: {pages:?}");
    }
}
