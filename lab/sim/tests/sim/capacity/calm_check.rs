//! Goal: the checker of calm finds a rule that refuses while nothing is short, and says nothing of one that
//! refuses because the origin is short. Method: fixed limits before origins that only wait, and before four
//! processors that are offered three times what they can do.

use super::calm_table::{ROWS, Row};
use super::mixture::{Load, Mixture, Names, Origin};
use flashweir_admission::sentry::Learning;
use flashweir_core::Duration;
use flashweir_sim::request::CalmReport;

fn row(name: &str) -> &'static Row {
    ROWS.iter().find(|row| row.name == name).expect("a row of the table")
}

fn crowd(origin: Origin, waits: f64) -> Mixture {
    let cell = Mixture {
        fast_ms: 15,
        ratio: 100,
        waits,
        slow: 0.1,
        origin,
        load: Load::WarmCrowd,
        names: Names::Known,
        polls: false,
        target_s: 1.0,
    };
    assert!(cell.makes_sense());
    cell
}

fn behind_limit(cell: &Mixture, limit: u32) -> CalmReport {
    cell.run_checked(Some(limit), Learning::SHIPPED, 1).calm.expect("the check was asked for")
}

/// Method: a limit of 2 before thirty pages and two polls a second: polls hold both places, and pages are
/// refused though the origin is as quick as alone.
#[test]
fn a_limit_of_two_beside_polls_breaks_calm() {
    let report = row("polls-20s").run(Names::Known, Some(2), 1).calm.expect("the check was asked for");
    println!("{:?} {:?}", report.refused, report.problem());
    assert!(report.broken.len() > 20 && report.refused[0] > 50, "{:?}", report.problem());
    let window = &report.broken[0];
    assert_eq!(window.during.end.saturating_since(window.during.start), Duration::from_secs(2));
    assert!(window.expected[0] >= 20.0 && window.completed[0] > 16, "{window:?}");
}

/// Method: the whole table behind a limit that none of its rows reaches.
#[test]
fn a_limit_that_is_not_reached_keeps_calm() {
    for row in ROWS {
        let run = row.run(Names::Known, Some(4_000), 1);
        let report = run.calm.as_ref().expect("the check was asked for");
        assert_eq!(run.totals().shed_total(), 0, "{}", row.name);
        assert!(report.broken.is_empty(), "{}: {:?}", row.name, report.problem());
        // An origin that stands still a fifth of the time is not calm.
        assert!(report.calm > 300 || row.stalls.is_some(), "{}: {}", row.name, report.calm);
    }
}

/// Method: three times what the origin can do behind limits at and above its processors. At 4 all take as
/// long as alone, and the processors are at full use; at 8 and 16 they take longer.
#[test]
fn a_limit_before_an_overloaded_origin_breaks_no_calm() {
    let cell = crowd(Origin::Shared, 0.0);
    for limit in [4, 8, 16] {
        let run = cell.run_checked(Some(limit), Learning::SHIPPED, 1);
        assert!(run.totals().shed_total() > 500, "{limit}: {:?}", run.totals());
        let shed = run.totals().shed_total();
        let report = run.calm.expect("the check was asked for");
        // A processor is idle for a moment between two requests.
        assert!(100 * report.refused.iter().sum::<u64>() <= shed, "{limit}: {:?}", report.problem());
    }
}

/// Method: a limit of 1 in the same crowd leaves three of four processors idle.
#[test]
fn a_limit_that_leaves_processors_idle_breaks_calm() {
    let report = behind_limit(&crowd(Origin::Shared, 0.0), 1);
    assert!(report.broken.len() > 100, "{:?}", report.problem());
}

/// Method: slow requests hold the 32 workers of a pool while they wait; at limits of 32 and 64 they are
/// taken, or the processors are; a limit of 2 leaves both idle.
#[test]
fn a_pool_is_short_when_its_workers_are_taken() {
    let cell = crowd(Origin::Pool, 1.0);
    for limit in [32, 64] {
        assert_eq!(behind_limit(&cell, limit).problem(), None, "{limit}");
    }
    let run = cell.run_checked(Some(2), Learning::SHIPPED, 1);
    println!("{:?} {:?}", run.totals(), run.mean_level(150..450));
    let report = run.calm.expect("the check was asked for");
    assert!(report.broken.len() > 100, "{:?} {}", report.problem(), report.calm);
}
