//! The capacity matrix: how much of the possible goodput the sentry gets without knowing the origin, cell by
//! cell.
//!
//! `cargo bench -p flashweir-sim --bench capacity -- [sample=N] [shuffle=M] [seed=S] [seeds=K]
//! [trace|sensitivity|ablation|changes|mixtures|calm] [WORD...]`: only cells whose name has all words (`c=4
//! Heavy x3`), a sample of N of them (another one for each M), the crowds of K seeds together in each;
//! `trace` prints the limits taken, `sensitivity` what depends on each number of the model by which a crowd's
//! limit is learned (`sensitivity numbers`: of the evidence of calm), `ablation` what each rule is worth, and
//! `changes` how soon a change of the origin is found. `mixtures` runs cells of requests that differ
//! (`fast=15 ratio=100 Crowd`) instead, with `sensitivity` for the numbers of the evidence of calm, and
//! `calm` the table of requests refused while nothing is short.

mod calm;
#[path = "../../tests/sim/capacity/calm_table.rs"]
mod calm_table;
#[path = "../../tests/sim/capacity/cell.rs"]
mod cell;
mod changes;
mod matrix;
#[path = "../../tests/sim/capacity/mixture.rs"]
mod mixture;
#[path = "../../tests/sim/capacity/mixture_score.rs"]
mod mixture_score;
mod mixtures;
#[path = "../../tests/sim/capacity/score.rs"]
mod score;
mod sensitivity;
mod threads;
mod variants;

use cell::Cell;
use flashweir_admission::sentry::Learning;
use flashweir_sim::request::RunOutcome;
use matrix::Words;
use mixture::{Mixture, Names};
use score::Score;
use std::collections::BTreeMap;
use std::fmt::Display;

fn main() {
    let words = Words::given();
    let seeds = words.seeds();
    if words.has("calm") && words.has("trace") {
        let rows = calm::rows(&words.filters(&["calm", "trace"]));
        return rows.iter().for_each(|row| trace(&row.name, &row.run(Names::Known, None, seeds[0])));
    }
    if words.has("calm") {
        return calm::print(&words.filters(&["calm"]), &seeds);
    }
    if words.has("mixtures") {
        let cells = words.chosen(Mixture::all(), &["mixtures", "trace", "ablation", "sensitivity"]);
        if words.has("trace") {
            return cells
                .iter()
                .for_each(|cell| trace(cell, &cell.run_checked(None, Learning::SHIPPED, seeds[0])));
        }
        if words.has("ablation") {
            return mixtures::print_variants(cells, &seeds, &variants::ablation());
        }
        if words.has("sensitivity") {
            return mixtures::print_variants(cells, &seeds, &variants::of_numbers());
        }
        return mixtures::print(cells, &seeds);
    }
    let cells = words.cells(&["trace", "sensitivity", "numbers", "ablation", "changes"]);
    if words.has("trace") {
        return cells.iter().for_each(|cell| trace(cell, &cell.run(seeds[0])));
    }
    if words.has("sensitivity") {
        let variants = if words.has("numbers") { variants::of_numbers() } else { variants::of_constants() };
        return sensitivity::print(&cells, &seeds, &variants);
    }
    if words.has("ablation") {
        return sensitivity::print(&cells, &seeds, &variants::ablation());
    }
    if words.has("changes") {
        return changes::print(&cells, &seeds);
    }
    let mut scored = threads::on_all(cells, |cell| (cell, Score::of(&cell, &seeds)));
    scored.sort_by(|(_, one), (_, other)| one.share.total_cmp(&other.share));
    print_cells(&scored);
    print_summary(&scored);
}

fn print_cells(scored: &[(Cell, Score)]) {
    println!(
        "share  worst through settled p95/R p99/R  90% at   possible/s  refused in quiet  infeasible reported  cell"
    );
    for (cell, score) in scored {
        let mark = if cell.is_feasible() { ' ' } else { '!' };
        println!(
            "{:>5.3} {:>6.3} {:>7.3} {:>6.3} {:>5.2} {:>5.2} {:>6.1} s {:>10.1} {:>8}/{:<8} {:>10.2} {mark} {cell}",
            score.share,
            score.worst_share,
            score.throughput_share,
            score.settled_share,
            score.p95_over_target,
            score.p99_over_target,
            score.recovery_s,
            score.known_rps,
            score.refused_in_quiet.0,
            score.refused_in_quiet.1,
            score.reported_infeasible,
        );
    }
}

fn print_summary(scored: &[(Cell, Score)]) {
    let mut groups: BTreeMap<String, Vec<&Score>> = BTreeMap::new();
    for (cell, score) in scored {
        let feasible = if cell.is_feasible() { "feasible" } else { "infeasible" };
        let change = format!("{:?}", cell.change);
        for key in [
            String::new(),
            change,
            format!("c={}", cell.cores),
            format!("s={}", cell.work_ms),
            format!("{:?}", cell.spread),
            format!("R={}", cell.target_s),
            format!("x{}", cell.load),
        ] {
            groups.entry(format!("{feasible} {key}")).or_default().push(score);
        }
    }
    println!(
        "\n{:<28} cells   mean  worst   crowd  >=.95  >=.90  through settled  90% in 3 s  reported infeasible  p95<=R  p99<=1.25R",
        ""
    );
    for (key, scores) in groups {
        let count = scores.len() as f64;
        let part =
            |good: &dyn Fn(&Score) -> bool| scores.iter().filter(|score| good(score)).count() as f64 / count;
        let mean_of = |value: &dyn Fn(&Score) -> f64| {
            scores.iter().map(|score| value(score).min(1.0)).sum::<f64>() / count
        };
        let least = |value: &dyn Fn(&Score) -> f64| {
            scores.iter().map(|score| value(score)).fold(f64::INFINITY, f64::min)
        };
        println!(
            "{key:<28} {count:>5} {:>6.3} {:>6.3} {:>7.3} {:>6.2} {:>6.2} {:>8.3} {:>7.3} {:>11.2} {:>20.2} {:>7.2} {:>11.2}",
            mean_of(&|score| score.share),
            least(&|score| score.share),
            least(&|score| score.worst_share),
            part(&|score| score.share >= 0.95),
            part(&|score| score.share >= 0.90),
            mean_of(&|score| score.throughput_share),
            mean_of(&|score| score.settled_share),
            part(&|score| score.recovery_s <= 3.0),
            mean_of(&|score| score.reported_infeasible),
            part(&|score| score.p95_over_target <= 1.0),
            part(&|score| score.p99_over_target <= 1.25),
        );
    }
}

fn trace(cell: &impl Display, outcome: &RunOutcome) {
    println!("{cell}");
    for taken in &outcome.limits {
        let (plan, why) = (&taken.plan, &taken.plan.explanation);
        println!(
            "{:>8.2} s  limit {:>5} {:<10} in flight {:>7.1}  {:>9.1}/s  knee {:>7.1} stretch {:>5.2} p95 {:>6.3} s  hold {:>4} for {:?}  long {} at most {} {}",
            taken.at.as_secs_f64(),
            plan.limit,
            format!("{:?}", why.rule),
            why.in_flight,
            why.completed_rps,
            why.knee.unwrap_or(f64::NAN),
            why.stretch.unwrap_or(f64::NAN),
            why.response_p95_s.unwrap_or(f64::NAN),
            plan.classes[0].hold_len,
            plan.classes[0].hold_for,
            plan.long.url_classes.len(),
            plan.long.limit.map_or("-".to_owned(), |limit| limit.to_string()),
            if why.target_infeasible { "infeasible" } else { "" },
        );
    }
}
