//! The matrix with variants of what the sentry learns by, as rows of a Markdown table: means take a cell for
//! 1 at most; *moved* counts cells whose share is another by more than 0.02.

use crate::cell::Cell;
use crate::score::Score;
use crate::threads;
use crate::variants::Variant;
use flashweir_sim::request::RunOutcome;

/// Runs all of them and prints the table.
pub(crate) fn print(cells: &[Cell], seeds: &[u64], variants: &[Variant]) {
    let rows = threads::on_all(cells.to_vec(), |cell| scores(&cell, seeds, variants));
    println!(
        "{} cells, {} crowds in each, of which {} with a target that can be met",
        cells.len(),
        seeds.len(),
        feasible(cells).count()
    );
    println!(
        "| variant | mean | at least 0.90 | worst | moved | throughput, target that cannot be met | cells that refuse in quiet |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (at, (name, _)) in variants.iter().enumerate() {
        print_row(name, cells, &rows, at);
    }
}

fn scores(cell: &Cell, seeds: &[u64], variants: &[Variant]) -> Vec<Score> {
    let known = cell.known(seeds);
    let of_one = |(_, learning): &Variant| {
        let runs: Vec<RunOutcome> = seeds.iter().map(|seed| cell.run_with(*seed, *learning)).collect();
        Score::compare(cell, &runs, &known)
    };
    variants.iter().map(of_one).collect()
}

fn feasible(cells: &[Cell]) -> impl Iterator<Item = usize> + '_ {
    cells.iter().enumerate().filter(|(_, cell)| cell.is_feasible()).map(|(at, _)| at)
}

fn print_row(name: &str, cells: &[Cell], rows: &[Vec<Score>], variant: usize) {
    let good: Vec<f64> = feasible(cells).map(|at| rows[at][variant].share).collect();
    let count = good.len().max(1) as f64;
    let mean = good.iter().map(|share| share.min(1.0)).sum::<f64>() / count;
    let most = good.iter().filter(|share| **share >= 0.9).count() as f64 / count;
    let worst = good.iter().copied().fold(f64::INFINITY, f64::min);
    let moved =
        feasible(cells).filter(|&at| (rows[at][variant].share - rows[at][0].share).abs() > 0.02).count();
    let infeasible: Vec<f64> = cells
        .iter()
        .zip(rows)
        .filter(|(cell, _)| !cell.is_feasible())
        .map(|(_, row)| row[variant].throughput_share.min(1.0))
        .collect();
    let throughput = infeasible.iter().sum::<f64>() / infeasible.len().max(1) as f64;
    let refusing = feasible(cells).filter(|&at| rows[at][variant].refused_in_quiet.0 > 0).count();
    println!("| {name} | {mean:.3} | {most:.2} | {worst:.3} | {moved} | {throughput:.3} | {refusing} |");
}
