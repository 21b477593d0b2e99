//! `flashweir load compare`.

mod noise;
mod rows;

use super::output::aligned;
use super::result_file;
use crate::{LoadResult, Tally};
use anyhow::Context as _;
use rows::Comparison;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::PathBuf;

/// Compare two results: what got better, what got worse, and what is noise.
///
/// Prints the figures of A and B with B / A, of shares with B − A; for all classes together and for each
/// class that both have. Figures that are nought in both are left out; --json has every point of every
/// distribution.
///
/// Exits with 0 for every finding: use `--assert` where a bound has to hold.
#[derive(Debug, clap::Args)]
#[command(after_help = noise::RULE)]
pub(crate) struct CompareArgs {
    /// The result to compare with, as `--out` or `--json` wrote it.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The result to compare.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
}

impl CompareArgs {
    /// Reads both and prints the comparison.
    ///
    /// # Errors
    /// A file that cannot be read, by its name; stdout that cannot be written.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (a_name, a) = result_file::read(&self.a)?;
        let (b_name, b) = result_file::read(&self.b)?;
        let text = if self.json {
            let facts = json!({ "a": a_name, "b": b_name, "rule": noise::RULE, "doubts": doubts(&a, &b) });
            serde_json::to_string(&with_parts(facts, &a, &b))? + "\n"
        } else {
            let mut text = format!("A: {a_name}\nB: {b_name}\n");
            text += &tables(&a, &b);
            text
        };
        std::io::stdout().write_all(text.as_bytes()).context("the comparison cannot be printed")
    }
}

/// The ledgers that both have, that of all classes first, and their names.
fn parts<'a>(
    a: &'a LoadResult,
    b: &'a LoadResult,
) -> impl Iterator<Item = (Option<&'a str>, &'a Tally, &'a Tally)> {
    // With one class in each, the total is that class.
    let compared = if a.classes.len().max(b.classes.len()) > 1 { usize::MAX } else { 0 };
    let classes =
        a.classes.iter().filter_map(|(name, of_a)| Some((Some(name.as_str()), of_a, b.classes.get(name)?)));
    [(None, &a.totals, &b.totals)].into_iter().chain(classes.take(compared))
}

fn comparisons(a: &LoadResult, b: &LoadResult, of_a: &Tally, of_b: &Tally, whole: bool) -> Vec<Comparison> {
    let mut rows = rows::of_ledgers((a, of_a), (b, of_b));
    if whole {
        rows.extend(rows::of_runs(a, b));
    }
    rows
}

fn tables(a: &LoadResult, b: &LoadResult) -> String {
    let mut text = String::new();
    for doubt in doubts(a, b) {
        text += &format!("note: {doubt}\n");
    }
    for (class, of_a, of_b) in parts(a, b) {
        let heading = class.map_or_else(|| "everybody".to_owned(), |class| format!("class {class}"));
        let mut lines = vec![[heading.as_str(), "A", "B", "B / A", ""].map(str::to_owned).to_vec()];
        let rows = comparisons(a, b, of_a, of_b, class.is_none());
        lines.extend(rows.iter().filter(|row| !row.is_minor).map(Comparison::cells));
        text.push('\n');
        text += &aligned(&lines);
    }
    text + "\n" + noise::RULE + "\n"
}

fn with_parts(mut facts: Value, a: &LoadResult, b: &LoadResult) -> Value {
    let mut classes = Map::new();
    for (class, of_a, of_b) in parts(a, b) {
        let rows = comparisons(a, b, of_a, of_b, class.is_none());
        let part: Map<_, _> = rows.iter().map(|row| (row.name.clone(), row.json())).collect();
        match class {
            None => facts["totals"] = Value::Object(part),
            Some(class) => drop(classes.insert(class.to_owned(), Value::Object(part))),
        }
    }
    facts["classes"] = Value::Object(classes);
    facts
}

/// Reasons other than the target for which the figures may differ.
fn doubts(a: &LoadResult, b: &LoadResult) -> Vec<String> {
    let mut doubts = Vec::new();
    for (name, result) in [("A", a), ("B", b)] {
        if result.saturated {
            doubts.push(format!(
                "the generator of {name} was saturated: its figures say more about it than the target"
            ));
        }
        if result.run.interrupted {
            doubts.push(format!("{name} was interrupted"));
        }
    }
    let mut differ = |what: &str, of_a: String, of_b: String| {
        if of_a != of_b {
            doubts.push(format!("not the same crowd: {what} is {of_a} in A and {of_b} in B"));
        }
    };
    differ("the seed", a.run.seed.to_string(), b.run.seed.to_string());
    differ("the length", format!("{} s", a.run.length_s), format!("{} s", b.run.length_s));
    differ("the part", a.run.shards.join(", "), b.run.shards.join(", "));
    let only = |name: &str, of: &LoadResult, other: &LoadResult| {
        let missing: Vec<_> =
            of.classes.keys().filter(|class| !other.classes.contains_key(*class)).cloned().collect();
        (!missing.is_empty()).then(|| format!("only {name} has the classes {}", missing.join(", ")))
    };
    doubts.extend(only("A", a, b).into_iter().chain(only("B", b, a)));
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Second;
    use crate::command::sample;

    /// Slower by half, and a tenth of the goodput lost in every second.
    fn worse() -> LoadResult {
        let mut result = sample::result();
        let spoil = |tally: &mut Tally| {
            tally.latency_ms.p99 = tally.latency_ms.p99.map(|ms| ms * 1.5);
            tally.goodput_ratio = tally.goodput_ratio.map(|ratio| ratio * 0.9);
            for second in &mut tally.series {
                let Second { latency_p99_ms, goodput, .. } = second;
                *latency_p99_ms = latency_p99_ms.map(|ms| ms * 1.5);
                *goodput -= second.unique_offered / 10;
            }
        };
        spoil(&mut result.totals);
        result.classes.values_mut().for_each(spoil);
        result
    }

    #[test]
    fn figures_beyond_noise_are_marked_in_words() {
        let (a, b) = (sample::result(), worse());
        let text = tables(&a, &b);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("p99 ").ends_with(" 1.500  worse"), "{text}");
        assert!(line("p50 ").ends_with(" 1.000   same"), "{text}");
        assert!(line("goodput_ratio ").ends_with(" points  worse"), "{text}");
        assert!(text.contains("class buyers") && text.contains("two standard errors"), "{text}");
        assert!(
            !text.contains("note:") && !text.contains("timed_out") && !text.contains("lag_p999"),
            "{text}"
        );
        let back = tables(&b, &a);
        assert!(back.lines().any(|line| line.starts_with("p99 ") && line.ends_with("better")), "{back}");
    }

    #[test]
    fn json_has_the_same_by_name() {
        let value = with_parts(json!({}), &sample::result(), &worse());
        assert_eq!(value["totals"]["p99"]["verdict"], "worse");
        assert_eq!(value["totals"]["offered"]["ratio"], 1.0);
        assert_eq!(value["totals"]["lag_p999"]["a"], 1.4);
        assert!(value["totals"]["goodput_ratio"]["difference"].as_f64().unwrap() < -0.09, "{value}");
        assert_eq!(value["classes"]["buyers"]["p99"]["a"], 612.34);
        assert!(value["classes"]["buyers"]["connections"].is_null());
    }

    #[test]
    fn what_casts_doubt_on_a_comparison_is_noted() {
        let (a, mut b) = (sample::result(), sample::result());
        assert!(doubts(&a, &b).is_empty());
        b.run.seed = 8;
        b.saturated = true;
        b.classes.remove("buyers");
        let doubts = doubts(&a, &b);
        let wanted = ["generator of B", "the seed is 7 in A and 8 in B", "only A has the classes buyers"];
        assert!(wanted.iter().zip(&doubts).all(|(wanted, doubt)| doubt.contains(wanted)), "{doubts:?}");
    }
}
