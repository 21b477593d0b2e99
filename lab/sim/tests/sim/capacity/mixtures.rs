//! Goal: the ruler of mixtures is right where the answer is known. Method: the number and the names of its
//! cells, and scores of quick ones.

use super::mixture::{Load, Mixture, Names, Origin};
use super::mixture_score::Score;
use std::collections::BTreeSet;

#[test]
fn every_value_of_every_dimension_has_cells_and_names_are_unique() {
    let cells = Mixture::all();
    let names: BTreeSet<String> = cells.iter().map(Mixture::to_string).collect();
    assert_eq!(names.len(), cells.len());
    let words: BTreeSet<&str> = names.iter().flat_map(|name| name.split(' ')).collect();
    // Three times, three ratios, four waits, three shares, two origins, three loads, two namings, two numbers
    // of classes, two targets.
    println!("{} cells, {words:?}", cells.len());
    assert_eq!(words.len(), 3 + 3 + 4 + 3 + 2 + 3 + 2 + 2 + 2);
}

/// Method: pages of 1 ms and slow requests of 10 ms, all work: any limit will do while half of the capacity
/// is offered, so the rule has what the best fixed limit has, and refuses nothing.
#[test]
fn quiet_requests_of_much_the_same_time_are_left_alone() {
    let cell = Mixture {
        fast_ms: 1,
        ratio: 10,
        waits: 0.0,
        slow: 0.1,
        origin: Origin::Shared,
        load: Load::Quiet,
        names: Names::OneUrl,
        polls: false,
        target_s: 1.0,
    };
    let score = Score::of(&cell, &[1, 2]);
    println!("{score:?}");
    assert!(
        cell.slow_counts()
            && score.share > 0.999
            && score.worst_share > 0.999
            && score.slow_share > 0.999
            && score.useful_share > 0.99,
        "{score:?}"
    );
    assert_eq!((score.pages_in_quiet.0, score.slow_in_quiet.0, score.calm.1), (0, 0, 0), "{score:?}");
    assert!(score.calm.0 > 50 && score.p95_over_target < 0.1, "{score:?}");
}

/// Method: a crowd of pages beside slow requests that wait 1.5 s and do no work. By Little's law there are
/// 44 slow ones in flight at the capacity; the best limit has room for about as many, far more than there
/// are processors, and comes near the capacity.
#[test]
fn the_best_fixed_limit_has_room_for_requests_that_wait() {
    let cell = Mixture {
        fast_ms: 15,
        ratio: 100,
        waits: 1.0,
        slow: 0.1,
        origin: Origin::Shared,
        load: Load::ColdCrowd,
        names: Names::Known,
        polls: false,
        target_s: 1.0,
    };
    let score = Score::of(&cell, &[1]);
    println!("{score:?}");
    let pages_rps = 0.9 * cell.capacity_rps();
    assert!(!cell.slow_counts() && (score.best_rps / pages_rps - 1.0).abs() < 0.1, "{score:?}");
    assert!(score.best.is_some_and(|limit| (12..=120).contains(&limit)), "{score:?}");
}
