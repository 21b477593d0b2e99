//! Requests refused in calm, before an origin that only waits, beside what issue 38 measured with the real
//! gateway.

use crate::calm_table::{ROWS, Row};
use crate::cell::BIN_MS;
use crate::mixture::Names;
use crate::threads;
use flashweir_admission::flash_crowd::Cause;
use flashweir_admission::pipeline::{LoadCause, Situation, StageName, VerdictKeeper};
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{Counts, RunOutcome};

/// Runs the rows that have all words in their names, or all, each class with its own URL and all on one, and
/// prints a Markdown table.
pub(crate) fn print(words: &[&str], seeds: &[u64]) {
    let mut jobs: Vec<(&Row, Names, u64)> = Vec::new();
    for row in rows(words) {
        for names in [Names::Known, Names::OneUrl] {
            if names == Names::Known || row.kinds.len() > 1 {
                jobs.extend(seeds.iter().map(|seed| (row, names, *seed)));
            }
        }
    }
    let runs = threads::on_all(jobs, |(row, names, seed)| (row, names, seed, row.run(names, None, seed)));
    println!(
        "| calm | names | seed | refused, first kind | slow | in time, first kind | slow | limit: least, last | cause | calm windows | broken, exposed | refused in calm | real: refused | slow | cause |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (row, names, seed, run) in &runs {
        let (first, slow) = (counts(run, 0..1), counts(run, 1..run.classes.len()));
        let of = |part: u64, counts: &Counts| match counts.offered {
            0 => "–".to_owned(),
            offered => format!("{part} of {offered}"),
        };
        let measured = MEASURED.iter().find(|measured| measured.0 == row.name);
        let (_, real, real_slow, real_cause) = measured.unwrap_or(&("", "–", "–", "–"));
        let limits = || run.limits.iter().map(|taken| taken.plan.limit);
        let calm = run.calm.as_ref().expect("the check was asked for");
        println!(
            "| {} | {names:?} | {seed} | {} | {} | {} | {} | {}, {} | {} | {} | {}, {} | {} | {real} | {real_slow} | {real_cause} |",
            row.name,
            of(first.shed_total(), &first),
            of(slow.shed_total(), &slow),
            of(first.goodput, &first),
            of(slow.goodput, &slow),
            limits().min().unwrap_or(START_LIMIT),
            limits().next_back().unwrap_or(START_LIMIT),
            cause(run).as_str(),
            calm.calm,
            calm.broken.len(),
            calm.exposed().count(),
            calm.refused.iter().sum::<u64>(),
        );
    }
}

/// Rows that have all words in their names.
pub(crate) fn rows(words: &[&str]) -> Vec<&'static Row> {
    let rows: Vec<&Row> =
        ROWS.iter().filter(|row| words.iter().all(|word| row.name.contains(word))).collect();
    assert!(!rows.is_empty(), "no row has all of the words {words:?}");
    rows
}

fn counts(run: &RunOutcome, classes: std::ops::Range<usize>) -> Counts {
    let mut counts = Counts::default();
    run.classes[classes].iter().for_each(|class| counts.add(&class.totals));
    counts
}

/// The verdict that was in force longest, of those other than calm where requests were refused for a second
/// in all.
fn cause(run: &RunOutcome) -> LoadCause {
    let mut keeper = VerdictKeeper::default();
    let mut bins_of = [0; LoadCause::ALL.len()];
    let bins = run.classes.iter().map(|class| class.bins.len()).max().unwrap_or(0);
    for bin in 0..bins {
        let now = Instant::ZERO + Duration::from_millis(BIN_MS) * (bin as u32 + 1);
        let plan = run.plans.iter().take_while(|plan| plan.at <= now).last();
        let mut refused = [0; StageName::COUNT];
        refused[StageName::Sentry as usize] = run.began_within(bin..bin + 1).shed_total();
        let situation = Situation {
            news: plan.map_or(Cause::TooFewSamples, |plan| plan.explanation.cause),
            has_ceiling: plan.is_some_and(|plan| plan.explanation.ceiling_rps.is_some()),
            judges_whole: false,
            waits_for_origin: false,
            refused,
            over_share: 0,
        };
        bins_of[keeper.judge(now, &situation).cause as usize] += 1;
    }
    let longest = LoadCause::ALL.into_iter().max_by_key(|cause| bins_of[*cause as usize]);
    longest.unwrap_or_default()
}

/// The limit before the first plan that changes it.
const START_LIMIT: u32 = 8;

/// Rows of issue 38: refused by the real gateway, of how many offered, of the first kind and of the slow
/// ones, and the cause that it named.
const MEASURED: &[(&str, &str, &str, &str)] = &[
    ("polls-20s", "1,346 of 1,482", "90 of 103", "slow_backend"),
    ("polls-20s-pages-to-150", "4,713 of 5,041", "87 of 103", "slow_backend"),
    ("1/s-of-10s", "838 of 1,482", "22 of 49", "slow_backend"),
    ("2/s-of-6s", "752 of 1,482", "48 of 103", "slow_backend"),
    (".5/s-of-5s", "69 of 1,482", "2 of 23", "calm"),
    (".2/s-of-20s", "37 of 1,482", "1 of 16", "calm"),
    ("2/s-of-3s", "33 of 1,482", "4 of 103", "calm"),
    ("all-800ms-20-to-60", "1,268 of 2,162", "–", "slow_backend"),
    ("all-2s", "284 of 492", "–", "slow_backend"),
    ("all-5s", "118 of 141", "–", "slow_backend"),
    ("warm-up", "954 of 991", "–", "slow_backend"),
];
