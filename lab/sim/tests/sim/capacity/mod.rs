//! Goal: the sentry finds what origins can do. Method: a few quick cells of the matrix that
//! `cargo bench -p flashweir-sim --bench capacity` runs whole, each against an oracle that knows the origin.

mod calm;
mod calm_check;
mod calm_table;
mod cell;
mod mixture;
mod mixture_score;
mod mixtures;
mod quiet;
mod score;
mod short_calm;

use cell::{Cell, Change, Spread};
use flashweir_admission::sentry::Rule;
use score::Score;

fn cell(cores: u32, work_ms: u32, spread: Spread, target_s: f64, load: f64, change: Change) -> Cell {
    let cell = Cell { cores, work_ms, spread, target_s, load, change };
    assert!(cell.makes_sense());
    cell
}

/// Crowds in each cell.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Checks a cell against the measured mean of the crowds, less a percent or two for changes that help in one
/// cell and hurt in another.
#[track_caller]
fn check(cell: Cell, share_least: f64, recovery_most_s: f64) {
    let scores: Vec<Score> = SEEDS.map(|seed| Score::of(&cell, &[seed])).collect();
    let mean = |value: fn(&Score) -> f64| scores.iter().map(value).sum::<f64>() / scores.len() as f64;
    let (share, settled) = (mean(|score| score.share), mean(|score| score.settled_share));
    println!("{cell}: {share:.4} {settled:.4}");
    assert!(share >= share_least && settled >= share_least, "{cell}: {share} {settled} {scores:?}");
    for score in &scores {
        assert!(
            cell.is_feasible()
                && score.known_rps > 0.0
                && score.recovery_s <= recovery_most_s
                && score.p95_over_target <= 1.0,
            "{cell}: {score:?}"
        );
        assert_eq!((score.refused_in_quiet.0, score.reported_infeasible), (0, 0.0), "{cell}: {score:?}");
    }
}

#[test]
fn steady_crowds_get_what_the_origin_can_do() {
    check(cell(4, 15, Spread::Constant, 1.0, 3.0, Change::Steady), 0.98, 1.0);
    check(cell(16, 100, Spread::Exponential, 1.0, 1.5, Change::Steady), 0.96, 1.0);
    check(cell(4, 15, Spread::ByPage, 1.0, 3.0, Change::Steady), 0.97, 1.0);
}

#[test]
fn a_changed_origin_is_found_within_three_seconds() {
    check(cell(16, 100, Spread::Constant, 1.0, 3.0, Change::Slower), 0.97, 3.0);
    check(cell(16, 15, Spread::Exponential, 1.0, 1.5, Change::MoreCores), 0.96, 3.0);
    check(cell(16, 100, Spread::Constant, 3.0, 1.5, Change::FewerCores), 0.95, 3.0);
    check(cell(4, 15, Spread::Constant, 1.0, 3.0, Change::Slower), 0.95, 3.0);
    check(cell(16, 15, Spread::Heavy, 1.0, 10.0, Change::MoreCores), 0.91, 3.0);
}

#[test]
fn origins_of_other_kinds_are_understood() {
    // Not the 0.98 that the rule of experiments held: the limit settles at 19 where 16 is best, which alone
    // costs 1 - 1.30/1.36 = 0.044. Measured: 0.948 to 0.950 in the three crowds.
    check(cell(16, 15, Spread::Constant, 1.0, 3.0, Change::Retrograde(0.02)), 0.92, 3.0);
    check(cell(4, 15, Spread::Constant, 1.0, 3.0, Change::Pool), 0.98, 3.0);
    check(cell(16, 15, Spread::ByPage, 1.0, 1.5, Change::MixShift), 0.97, 3.0);
    check(cell(16, 15, Spread::Heavy, 1.0, 1.5, Change::Steady), 0.95, 3.0);
}

#[test]
fn a_cold_start_inside_the_crowd_is_survived() {
    check(cell(4, 100, Spread::Constant, 1.0, 3.0, Change::ColdStart), 0.97, 3.0);
}

/// Regression: eight requests on one core took four targets each, at the end of their clients' patience; as
/// nothing had come back sooner, that was taken for their usual time, sixteen were let in, and no request was
/// ever answered again.
#[test]
fn an_origin_whose_clients_leave_in_vain_at_a_cold_start_recovers() {
    for load in [1.5, 3.0, 10.0] {
        let cell = cell(1, 500, Spread::Constant, 1.0, load, Change::ColdStart);
        let shares = [31, 32, 33].map(|seed| Score::of(&cell, &[seed]).share);
        println!("{cell}: {shares:.3?}");
        assert!(shares.iter().sum::<f64>() >= 0.4 * 3.0, "{cell}: {shares:?}");
    }
}

#[test]
fn a_target_that_cannot_be_met_is_reported() {
    // Three crowds together: of exponential work one of them has 0.84 to 1.02, by chance.
    let seeds: Vec<u64> = SEEDS.collect();
    let score = Score::of(&cell(4, 100, Spread::Exponential, 0.3, 3.0, Change::Steady), &seeds);
    println!("{score:?}");
    assert!(score.reported_infeasible > 0.0 && score.p99_over_target > 1.0, "{score:?}");
    assert!(score.share > 0.9 && score.throughput_share > 0.9, "{score:?}");
}

/// Goal: a target that no limit meets is reported during the whole crowd, and not only while the number of
/// servers is known. Method: four crowds; a rule that reported it only then did so for none of one crowd
/// and for a fiftieth of another.
#[test]
fn a_target_that_cannot_be_met_stays_reported() {
    for seed in 1..=4 {
        let score = Score::of(&cell(16, 500, Spread::Exponential, 0.3, 3.0, Change::Steady), &[seed]);
        println!("{score:?}");
        assert!(score.reported_infeasible > 0.9, "seed {seed}: {score:?}");
    }
}

/// Goal: one request that was quick by chance before anything was known does not keep the limit far below
/// what a quiet stretch needs. Method: the first request takes 5 ms of a usual 500; with a rule that
/// compared it with others four in five of the quiet stretch were refused.
#[test]
fn one_quick_request_does_not_keep_the_limit_down() {
    let score = Score::of(&cell(64, 500, Spread::Exponential, 1.0, 3.0, Change::Steady), &[66]);
    println!("{score:?}");
    let (refused, offered) = score.refused_in_quiet;
    assert!((refused as f64) < 0.3 * offered as f64 && score.throughput_share > 0.95, "{score:?}");
}

/// Goal: where one request in ten takes forty times as long as the others, and no limit answers it in time,
/// the long ones do not keep the limit at a few of 64 servers. Method: the mean of eight crowds, .70 (.59
/// to .86 each: of three versions of the rule each had its own worst crowd), and each one; with a rule that
/// took the places of long requests for a slow origin they had .02 to .08 of the throughput.
#[test]
fn a_few_very_long_requests_do_not_keep_the_limit_down() {
    let cell = cell(64, 500, Spread::Heavy, 1.0, 3.0, Change::Steady);
    let shares: Vec<f64> = (1..=8).map(|seed| Score::of(&cell, &[seed]).throughput_share).collect();
    println!("{cell}: {shares:.3?}");
    assert!(shares.iter().sum::<f64>() > 0.6 * 8.0, "{shares:?}");
    assert!(shares.iter().all(|share| *share > 0.5), "{shares:?}");
}

/// Goal: requests of half a second, of which each may take no more than twice as long, are answered in time
/// again soon after the origin lost two thirds of its servers. Method: ten times what sixteen servers can
/// do; with a rule that lowered the limit by a half at most, and doubled it in the crowd, 0.83 of what can
/// be had.
#[test]
fn a_slow_origin_that_lost_most_of_its_servers_is_not_kept_overloaded() {
    let seeds: Vec<u64> = (1..=8).collect();
    let score = Score::of(&cell(16, 500, Spread::Constant, 1.0, 10.0, Change::FewerCores), &seeds);
    println!("{score:?}");
    assert!(score.share > 0.86 && score.worst_share > 0.7, "{score:?}");
}

/// Goal: a limit above what the origin takes in at once goes down, though what the origin works on does not
/// get on. Method: 128 workers and room for 64, a refusal costs a tenth of an answer, and ten times what
/// can be done is offered; with a rule that waited until ages settled, 0.65 of what can be had.
#[test]
fn an_origin_that_is_busy_with_refusing_is_sent_less() {
    let score = Score::of(&cell(64, 100, Spread::Heavy, 3.0, 10.0, Change::Pool), &[31]);
    println!("{score:?}");
    assert!(score.share > 0.85, "{score:?}");
}

/// Goal: in a crowd at an origin whose knee was found the limit does not double: too high a limit makes all
/// in flight late. Method: each raise by the model in a crowd during which the servers go and come back;
/// with a rule that doubled, one went from 45 to 90.
#[test]
fn a_limit_does_not_double_in_a_crowd() {
    let cell = cell(64, 500, Spread::Constant, 1.0, 3.0, Change::FewerCores);
    let limits = cell.run(401).limits;
    let (begin_s, _) = cell.crowd_s();
    let settled =
        limits.iter().position(|taken| taken.at > cell::at(begin_s + 4.0)).expect("a move in the crowd");
    let raises: Vec<(u32, u32)> = limits[settled - 1..]
        .windows(2)
        .filter(|pair| pair[1].plan.explanation.rule == Rule::Raise)
        .map(|pair| (pair[0].plan.limit, pair[1].plan.limit))
        .collect();
    println!("{raises:?}");
    assert!(
        !raises.is_empty() && raises.iter().all(|(from, to)| f64::from(*to) <= 1.5 * f64::from(*from)),
        "{raises:?}"
    );
}

/// Goal: a limit of 1 can go up. Method: one server that becomes three; where half an octave was all, 0.74
/// of what can be had in eight crowds.
#[test]
fn a_limit_of_one_goes_up() {
    let seeds: Vec<u64> = (501..=508).collect();
    let score = Score::of(&cell(1, 100, Spread::Constant, 0.3, 1.5, Change::MoreCores), &seeds);
    println!("{score:?}");
    assert!(score.share > 0.85, "{score:?}");
}
