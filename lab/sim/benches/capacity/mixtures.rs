//! Requests that differ: goodput behind the sentry over that behind the best fixed limit for the mixture, and
//! requests refused while there is room.

use crate::mixture::Mixture;
use crate::mixture_score::{Known, Score};
use crate::threads;
use crate::variants::Variant;
use std::collections::BTreeMap;

/// Runs all cells with all seeds; prints each, and means by the words of their names.
pub(crate) fn print(cells: Vec<Mixture>, seeds: &[u64]) {
    let mut scored = threads::on_all(cells, |cell| (cell, Score::of(&cell, seeds)));
    scored.sort_by(|(_, one), (_, other)| one.share.total_cmp(&other.share));
    println!(
        "share  worst useful   slow p95/R best limit  possible/s  refused in quiet: pages, slow  calm windows: broken, refused  cell"
    );
    for (cell, score) in &scored {
        let best = score.best.map_or("none".to_owned(), |limit| limit.to_string());
        println!(
            "{:>5.3} {:>6.3} {:>6.3} {:>6.3} {:>5.2} {best:>10} {:>11.1} {:>14}/{:<6} {:>5}/{:<5} {:>6}: {:>5}, {:>6}  {cell}",
            score.share,
            score.worst_share,
            score.useful_share,
            score.slow_share,
            score.p95_over_target,
            score.best_rps,
            score.pages_in_quiet.0,
            score.pages_in_quiet.1,
            score.slow_in_quiet.0,
            score.slow_in_quiet.1,
            score.calm.0,
            score.calm.1,
            score.calm.2,
        );
    }
    print_summary(&scored);
}

fn print_summary(scored: &[(Mixture, Score)]) {
    let mut groups: BTreeMap<String, Vec<&Score>> = BTreeMap::new();
    for (cell, score) in scored {
        let name = cell.to_string();
        let feasible = if cell.slow_counts() { "slow-in-time" } else { "slow-late" };
        for word in ["all", feasible].into_iter().chain(name.split(' ')) {
            groups.entry(word.to_owned()).or_default().push(score);
        }
    }
    println!(
        "\n| cells with | number | mean | worst | worst seed | at least 0.95 | useful, mean | slow, mean | refuse pages in quiet | pages refused in quiet | slow refused in quiet | break calm | p95 of pages in time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (word, scores) in groups {
        let count = scores.len() as f64;
        let part =
            |good: &dyn Fn(&Score) -> bool| scores.iter().filter(|score| good(score)).count() as f64 / count;
        let least =
            |value: fn(&Score) -> f64| scores.iter().map(|score| value(score)).fold(f64::INFINITY, f64::min);
        let mean =
            |value: fn(&Score) -> f64| scores.iter().map(|score| value(score).min(1.0)).sum::<f64>() / count;
        let refused = |of: fn(&Score) -> (u64, u64)| {
            let (refused, offered) =
                scores.iter().map(|score| of(score)).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            if offered == 0 { "–".to_owned() } else { format!("{:.4}", refused as f64 / offered as f64) }
        };
        println!(
            "| {word} | {count} | {:.3} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {:.2} | {} | {} | {:.2} | {:.2} |",
            mean(|score| score.share),
            least(|score| score.share),
            least(|score| score.worst_share),
            part(&|score| score.share >= 0.95),
            mean(|score| score.useful_share),
            mean(|score| score.slow_share),
            part(&|score| score.pages_in_quiet.0 > 0),
            refused(|score| score.pages_in_quiet),
            refused(|score| score.slow_in_quiet),
            part(&|score| score.calm.1 > 0),
            part(&|score| score.p95_over_target <= 1.0),
        );
    }
}

/// Runs all cells with each variant of what the sentry learns by; prints a row for each.
pub(crate) fn print_variants(cells: Vec<Mixture>, seeds: &[u64], variants: &[Variant]) {
    let count = cells.len() as f64;
    let rows = threads::on_all(cells, |cell| {
        let known = Known::best(&cell, seeds);
        let of_one = |(_, learning): &Variant| {
            let runs: Vec<_> = seeds.iter().map(|seed| cell.run_checked(None, *learning, *seed)).collect();
            Score::compare(&cell, &runs, &known)
        };
        variants.iter().map(of_one).collect::<Vec<Score>>()
    });
    println!("{count} mixtures, {} crowds in each", seeds.len());
    println!(
        "| variant | mean | worst | moved | useful, mean | break calm | pages refused in quiet | slow refused in quiet |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (at, (name, _)) in variants.iter().enumerate() {
        let scores = || rows.iter().map(|row| &row[at]);
        let mean =
            |value: fn(&Score) -> f64| scores().map(|score| value(score).min(1.0)).sum::<f64>() / count;
        let worst = scores().map(|score| score.share).fold(f64::INFINITY, f64::min);
        let moved = rows.iter().filter(|row| (row[at].share - row[0].share).abs() > 0.02).count();
        let refused = |of: fn(&Score) -> u64| scores().map(of).sum::<u64>();
        println!(
            "| {name} | {:.3} | {worst:.3} | {moved} | {:.3} | {} | {} | {} |",
            mean(|score| score.share),
            mean(|score| score.useful_share),
            scores().filter(|score| score.calm.1 > 0).count(),
            refused(|score| score.pages_in_quiet.0),
            refused(|score| score.slow_in_quiet.0),
        );
    }
}
