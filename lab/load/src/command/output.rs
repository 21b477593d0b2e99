//! The result as a table for people, and the warnings that go with it.

mod columns;
mod sentences;

pub(super) use columns::aligned;

use super::metric::{POINTS, Quantity, TIMES, Times, written};
use crate::report::number;
use crate::{LoadResult, Tally};

/// Reasons to doubt the figures, a line each.
pub(crate) fn warnings(result: &LoadResult) -> Vec<String> {
    let mut warnings = Vec::new();
    if result.saturated {
        let lag = result.totals.lag_us.p99.map_or_else(String::new, |us| {
            format!(" (99th percentile of its lag: {})", written(us / 1e3, Quantity::Time))
        });
        warnings.push(format!(
            "generator saturated: it could not keep up{lag}, so these figures say more about it than the target"
        ));
    }
    if result.totals.in_flight > 0 {
        warnings.push(format!(
            "{} tries have no outcome: the run did not end as it should",
            number(result.totals.in_flight as f64, 0)
        ));
    }
    warnings
}

/// The result as a table.
pub(crate) fn table(result: &LoadResult) -> String {
    let mut text = aligned(&ledger(&result.totals));
    text.push('\n');
    text += &aligned(&times(&result.totals));
    if result.classes.len() > 1 {
        text.push('\n');
        text += &aligned(&classes(result));
    }
    text.push('\n');
    for sentence in sentences::of(result) {
        text += &sentence;
        text.push('\n');
    }
    text
}

/// Outcome of every try, each count with its share of all tries.
fn ledger(tally: &Tally) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, count: u64| {
        let share = 100.0 * count as f64 / tally.offered.max(1) as f64;
        rows.push(vec![name.to_owned(), number(count as f64, 0), format!("{share:.1} %")]);
    };
    row("offered", tally.offered);
    row("  unique offered", tally.unique_offered);
    row("  sent", tally.sent);
    row("completed", tally.completed);
    row("  of these goodput", tally.goodput);
    row("refused", tally.refused);
    tally.refused_by_reason.iter().for_each(|(reason, count)| row(&format!("  {reason}"), *count));
    // One status says nothing that the reasons do not.
    if tally.refused_by_status.len() > 1 {
        tally.refused_by_status.iter().for_each(|(status, count)| row(&format!("  with {status}"), *count));
    }
    row("timed out", tally.timed_out);
    row("abandoned", tally.abandoned);
    row("errors", tally.errors);
    tally.errors_by_kind.iter().for_each(|(kind, count)| row(&format!("  {kind}"), *count));
    if tally.in_flight > 0 {
        row("in flight", tally.in_flight);
    }
    rows
}

/// The points of each distribution: milliseconds, of the lag microseconds.
fn times(tally: &Tally) -> Vec<Vec<String>> {
    let mut header = vec![String::new()];
    header.extend(POINTS.iter().map(|point| point.title.to_owned()));
    let row = |times: &Times| {
        let (unit, units_per_ms) = if times.name == "lag" { ("us", 1e3) } else { ("ms", 1.0) };
        let mut row = vec![format!("{}, {unit}", times.title)];
        row.extend(POINTS.iter().map(|point| {
            let value = times.of(tally, point);
            value.map_or_else(|| "-".to_owned(), |ms| format!("{:.1}", ms * units_per_ms))
        }));
        row
    };
    // Without retries all tries of a request together are its only try.
    let shown = TIMES.iter().filter(|times| times.name != "served" || tally.offered > tally.unique_offered);
    [header].into_iter().chain(shown.map(row)).collect()
}

/// A row for each class.
fn classes(result: &LoadResult) -> Vec<Vec<String>> {
    let header = [
        "class",
        "offered",
        "unique",
        "completed",
        "goodput",
        "ratio",
        "refused",
        "timed out",
        "abandoned",
        "errors",
        "p50 ms",
        "p99 ms",
    ];
    let row = |(name, tally): (&String, &Tally)| {
        let count = |count: u64| number(count as f64, 0);
        let time = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
        vec![
            name.clone(),
            count(tally.offered),
            count(tally.unique_offered),
            count(tally.completed),
            count(tally.goodput),
            tally.goodput_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            count(tally.refused),
            count(tally.timed_out),
            count(tally.abandoned),
            count(tally.errors),
            time(tally.latency_ms.p50),
            time(tally.latency_ms.p99),
        ]
    };
    let header = header.map(str::to_owned).to_vec();
    [header].into_iter().chain(result.classes.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;

    #[test]
    fn the_table_begins_with_the_books_and_has_a_row_for_each_class() {
        let text = table(&sample::result());
        let wanted = [
            "offered             1,100  100.0 %\n",
            "  flash_crowd           4    0.4 %",
            "  with 429              1    0.1 %\n",
            "  closed               20    1.8 %\n",
            "latency of completed, ms  20.0",
            "lag of the generator, us",
            "\nbrowsers    1,000   1,000",
            "\nbuyers        100     100",
            "goodput: 94.3 % of requests; offered 110.0/s, goodput 103.7/s over 10 s\n",
            "connections opened: 1,000, failed: 2, SYN packets sent again: 3\n",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{text}\nlacks {wanted:?}");
        }
        assert!(text.starts_with("offered") && !text.contains("in flight") && !text.contains("all tries of"));
    }

    #[test]
    fn one_class_is_not_told_twice() {
        let mut result = sample::result();
        result.classes.remove("buyers");
        assert!(!table(&result).contains("browsers"));
    }

    #[test]
    fn a_run_nobody_came_to_has_a_table_too() {
        let mut result = sample::result();
        result.totals = Tally::default();
        result.run.length_s = 0.0;
        let text = table(&result);
        assert!(text.contains("goodput: - of requests\n"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn what_makes_figures_doubtful_is_warned_of() {
        let mut result = sample::result();
        assert!(warnings(&result).is_empty());
        result.saturated = true;
        result.totals.in_flight = 2;
        let warnings = warnings(&result);
        assert!(warnings[0].starts_with("generator saturated: it could not keep up (99th"), "{warnings:?}");
        assert!(warnings[1].starts_with("2 tries have no outcome"), "{warnings:?}");
    }
}
