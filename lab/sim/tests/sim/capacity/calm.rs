//! Goal: no request is refused while nothing is short, however long it takes. Method: the table of calm
//! services, behind all stages of the gateway, each kind of request with its own URL and all on one, watched
//! by the checker that knows the origin.

use super::calm_table::{LENGTH_S, ROWS, Row};
use super::cell::bin;
use super::mixture::Names;
use flashweir_sim::request::RunOutcome;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

fn runs(row: &Row) -> impl Iterator<Item = (String, RunOutcome)> {
    [Names::Known, Names::OneUrl].into_iter().flat_map(move |names| {
        SEEDS.map(move |seed| (format!("{} {names:?} seed {seed}", row.name), row.run(names, None, seed)))
    })
}

/// All polls of a page's visitors arrive in one second of a cold start: until the first of them are found to
/// be long, pages wait behind them.
const ALL_AT_ONCE: [&str; 2] = ["300-at-once-of-55s", "300-at-once-later"];

/// Forty requests of 2 s at a known service of pages of 10 ms: eight places, and as many more as completions
/// have shown.
const RESTART: &str = "restart";
/// Requests wait 3 s each for another service, 800 of them: 120 in flight, sixteen times the places at a
/// start.
const DEPENDENCY: &str = "dependency";
/// The same for one URL of two.
const ONE_SLOW_URL: &str = "one-slow-url";
/// The origin's processor is another program's for 80 ms in each 180, for seven seconds, with 40 polls in
/// flight.
const FLAPPING: &str = "flapping-beside-polls";

#[test]
fn services_in_calm_are_not_refused() {
    let is_without = |row: &&Row| {
        ![RESTART, DEPENDENCY, ONE_SLOW_URL, FLAPPING]
            .iter()
            .chain(&ALL_AT_ONCE)
            .any(|name| *name == row.name)
    };
    for (name, run) in ROWS.iter().filter(is_without).flat_map(runs) {
        let report = run.calm.as_ref().expect("the check was asked for");
        assert_eq!(run.totals().shed_total(), 0, "{name}: {:?}", report.problem());
        assert_eq!(report.problem(), None, "{name}");
    }
}

/// Goal: polls on the URL of the pages keep no page out, either. Method: cold starts whose first places went
/// to polls before the times of pages were known; by the rule before it up to 1,509 of 1,591 pages were
/// refused.
#[test]
fn pages_on_the_url_of_polls_are_served_from_the_start() {
    let names = ["polls-20s", "polls-20s-pages-to-150", "2/s-of-6s", "2/s-of-3s"];
    for row in ROWS.iter().filter(|row| names.contains(&row.name)) {
        for seed in [39, 51, 66] {
            let totals = row.run(Names::OneUrl, None, seed).totals();
            assert_eq!(totals.shed_total(), 0, "{} seed {seed}: {totals:?}", row.name);
        }
    }
}

/// Goal: requests that keep all places while none completes give them back. Method: by the rule before it
/// 1,331 to 1,545 pages were refused on the URL of the polls, and in one start of 24 on a URL of their own.
#[test]
fn pages_behind_polls_of_a_cold_start_are_served_after_seconds() {
    for row in ROWS.iter().filter(|row| ALL_AT_ONCE.contains(&row.name)) {
        for seed in SEEDS.chain([34]) {
            for names in [Names::Known, Names::OneUrl] {
                let run = row.run(names, None, seed);
                let pages = &run.classes[0].totals;
                assert!(
                    10 * pages.shed_total() < pages.offered,
                    "{} {names:?} seed {seed}: {pages:?}",
                    row.name
                );
            }
        }
    }
}

/// Goal: requests that began together, and so are late together, do not pass for an origin that is short.
/// Method: cold starts in which they did; the rule before it refused 72 to 98, 1,046 and 197 to 211 of them.
#[test]
fn requests_that_began_together_do_not_lock_a_cold_start_out() {
    let starts =
        [("all-5s", 205, 20), ("all-5s", 206, 20), ("all-800ms-20-to-60", 239, 20), ("warm-up", 205, 60)];
    for (name, seed, refused_max) in starts {
        let row = ROWS.iter().find(|row| row.name == name).expect("a row of the table");
        let totals = row.run(Names::Known, None, seed).totals();
        assert!(totals.shed_total() <= refused_max, "{name} seed {seed}: {totals:?}");
    }
}

/// Goal: an origin whose compiler is cold is not locked out by the polls beside its pages. Method: starts in
/// which bases of times under load had polls keep their places for seconds; by the rule before it 964 to
/// 2,001 of some 3,300 pages were refused.
#[test]
fn a_cold_compiler_beside_polls_locks_no_page_out() {
    let row = ROWS.iter().find(|row| row.name == "compiler-beside-polls").expect("a row of the table");
    for (names, seeds) in [(Names::Known, [6, 16, 50]), (Names::OneUrl, [2, 29, 60])] {
        for seed in seeds {
            let totals = row.run(names, None, seed).totals();
            assert_eq!(totals.shed_total(), 0, "{names:?} seed {seed}: {totals:?}");
        }
    }
}

/// Goal: a deployment does not lock its service out. Method: the rule before it refused 909 of 1,970
/// requests, to the end.
#[test]
fn an_origin_that_starts_again_cold_is_served_after_seconds() {
    let row = ROWS.iter().find(|row| row.name == RESTART).expect("a row of the table");
    for seed in SEEDS {
        let run = row.run(Names::Known, None, seed);
        let (totals, late) = (run.totals(), run.began_within(bin(25.0)..bin(LENGTH_S)));
        assert!(totals.shed_total() <= 280, "seed {seed}: {totals:?}");
        assert!(late.shed_total() == 0 && late.goodput == late.offered, "seed {seed}: {late:?}");
    }
}

/// Goal: nothing is short while another service is slow, and the limit rises to what is in flight. Method:
/// the rule before it refused about 1,300 of 1,970 requests, and its limit fell to 2.
#[test]
fn a_service_whose_dependency_is_slow_is_let_in_after_turnovers() {
    let row = ROWS.iter().find(|row| row.name == DEPENDENCY).expect("a row of the table");
    let refused: Vec<u64> =
        SEEDS.map(|seed| row.run(Names::Known, None, seed).totals().shed_total()).collect();
    assert!(refused.iter().all(|refused| *refused <= 1_000), "{refused:?}");
    assert!(refused.iter().sum::<u64>() <= 3 * 870, "{refused:?}");
}

/// Goal: what slows one URL refuses no request of another. Method: by the rule before it, late requests kept
/// all places.
#[test]
fn one_slow_url_refuses_no_request_of_another() {
    let row = ROWS.iter().find(|row| row.name == ONE_SLOW_URL).expect("a row of the table");
    for seed in SEEDS {
        let run = row.run(Names::Known, None, seed);
        let (other, slow) = (&run.classes[0].totals, &run.classes[1].totals);
        assert!(400 * other.shed_total() <= other.offered, "seed {seed}: {other:?}");
        assert!(10 * other.goodput >= 9 * other.offered, "seed {seed}: {other:?}");
        assert!(2 * slow.shed_total() <= slow.offered, "seed {seed}: {slow:?}");
    }
}

/// Goal: polls that came while too many were in flight do not keep pages out once there is room for them
/// without a place. Method: by the rule before it 2,400 of 36,000 pages were refused, in some runs to the
/// end.
#[test]
fn polls_beside_an_origin_that_stands_still_at_times_keep_few_pages_out() {
    let row = ROWS.iter().find(|row| row.name == FLAPPING).expect("a row of the table");
    let refused: Vec<u64> =
        (1..=24).map(|seed| row.run(Names::Known, None, seed).classes[0].totals.shed_total()).collect();
    assert!(refused.iter().sum::<u64>() <= 400, "{refused:?}");
}
