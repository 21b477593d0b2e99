//! The demo's numbers as rows of text, for the terminal and the report alike.

use crate::demo::outcome::{Numbers, VisitOutcome};
use crate::demo::{PATIENCE, PROTECTED, UNPROTECTED};
use flashweir_load::report::number;

/// A row: what, without Flashweir, with Flashweir.
pub(crate) type Row = [String; 3];

/// The heading of each column; the first has none.
pub(crate) const COLUMNS: [&str; 3] = ["", UNPROTECTED, PROTECTED];

/// Every row, in the order people ask.
pub(crate) fn rows(numbers: &Numbers) -> Vec<Row> {
    let (before, after) = (&numbers.unprotected, &numbers.protected.outcome);
    let both =
        |name: &str, value: fn(&VisitOutcome) -> String| [name.to_owned(), value(before), value(after)];
    let only = |name: &str, value: String| [name.to_owned(), "–".to_owned(), value];
    let seconds = |value: Option<f64>| value.map_or("never".to_owned(), |seconds| format!("{seconds:.2} s"));
    let mut rows = vec![
        both("people who came (offered)", |o| count(o.offered)),
        both("served (completed)", |o| count(o.completed)),
        both("told to come back (refused)", |o| count(o.refused)),
        both("gave up waiting (timed out)", |o| count(o.timed_out)),
        both("errors", |o| count(o.errors)),
        both("capacity around the visit", |o| format!("{:.1}/s", o.capacity_rps)),
        both("goodput during the crowd", |o| {
            o.goodput_rps.map_or("–".to_owned(), |rps| format!("{rps:.1}/s"))
        }),
        both("goodput / capacity", |o| percent(o.goodput_ratio)),
        both("origin's time put to use (useful)", |o| percent(o.origin_time.useful)),
        both("  of which: busy × in time", |o| {
            let (busy, in_time) = (o.origin_time.busy_share, o.origin_time.in_time_share);
            busy.zip(in_time).map_or("–".to_owned(), |(busy, in_time)| {
                format!("{} × {}", percent(Some(busy)), percent(Some(in_time)))
            })
        }),
        both("p99 of those let in", |o| o.p99_admitted_ms.map_or("–".to_owned(), milliseconds)),
        only("protected after", seconds(numbers.protected.protect_delay_s)),
        only("released after", seconds(numbers.protected.release_delay_s)),
        only("verdict", numbers.protected.verdict.clone().unwrap_or_else(|| "–".to_owned())),
    ];
    if numbers.protected.early_alarms > 0 {
        rows.push(only("alarms while it was quiet", numbers.protected.early_alarms.to_string()));
    }
    if before.generator_saturated || after.generator_saturated {
        rows.push(both("load generator kept up", |o| {
            if o.generator_saturated { "no" } else { "yes" }.to_owned()
        }));
    }
    rows
}

/// Reasons to doubt some of the numbers, each in a sentence.
pub(crate) fn notes(numbers: &Numbers) -> Vec<String> {
    let visits = [(&numbers.unprotected, UNPROTECTED), (&numbers.protected.outcome, PROTECTED)];
    visits.into_iter().filter_map(|(outcome, visit)| outcome.origin_time.note(visit)).collect()
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

// No one in the crowd waits longer than the patience, so that much means at least that much.
fn milliseconds(value: f64) -> String {
    let at_least = if value >= PATIENCE.as_secs_f64() * 1e3 { "≥ " } else { "" };
    format!("{at_least}{} ms", number(value, 0))
}

fn count(people: u64) -> String {
    number(people as f64, 0)
}

/// The table for a terminal.
pub(crate) fn text(numbers: &Numbers) -> String {
    let rows = rows(numbers);
    let header = COLUMNS.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let [name, before, after] = [0, 1, 2].map(width);
    let line = |row: &Row| {
        let [n, b, a] = row;
        format!("{n:<name$}  {b:>before$}  {a:>after$}\n")
    };
    let rule = format!("{}\n", "─".repeat(name + before + after + 4));
    let body: String = rows.iter().map(line).collect();
    let notes: String = notes(numbers).iter().map(|note| format!("\n{note}\n")).collect();
    let capacity_rps = numbers.capacity_rps;
    format!("The origin's capacity: {capacity_rps:.1} requests/s\n\n{}{rule}{body}{notes}", line(&header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::outcome::Protected;
    use crate::demo::useful::OriginTime;
    use flashweir_core::measure::Useful;

    fn numbers() -> Numbers {
        let outcome = |completed, p99, ratio| VisitOutcome {
            offered: 20_000,
            completed,
            refused: 0,
            timed_out: 20_000 - completed,
            errors: 0,
            capacity_rps: 200.0,
            goodput_rps: Some(200.0 * ratio),
            goodput_ratio: Some(ratio),
            origin_time: origin_time(ratio, 5.0),
            p99_admitted_ms: Some(p99),
            generator_saturated: false,
        };
        Numbers {
            capacity_rps: 200.0,
            unprotected: outcome(900, 2000.0, 0.02),
            protected: Protected {
                outcome: outcome(6000, 431.7, 0.91),
                protect_delay_s: Some(0.45),
                release_delay_s: None,
                verdict: Some("popular".to_owned()),
                early_alarms: 0,
            },
        }
    }

    fn origin_time(in_time: f64, page_ms: f64) -> OriginTime {
        let before = Useful { busy: 0.2, in_time: 1.0, processor_ms: Some(5.0) };
        OriginTime::new(&before, &Useful { busy: 1.0, in_time, processor_ms: Some(page_ms) })
    }

    #[test]
    fn columns_line_up_and_say_what_did_not_happen() {
        let text = text(&numbers());
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
        for wanted in ["≥ 2,000 ms", "432 ms", "91.0 %", "100.0 % × 2.0 %", "0.45 s", "never", "popular"] {
            assert!(text.contains(wanted), "{text} lacks {wanted}");
        }
        assert!(!text.contains("alarms while") && !text.contains("generator"));
    }

    #[test]
    fn what_casts_doubt_on_the_numbers_gets_a_row() {
        let mut doubtful = numbers();
        doubtful.protected.early_alarms = 2;
        doubtful.unprotected.generator_saturated = true;
        let text = text(&doubtful);
        assert!(text.contains("alarms while it was quiet") && text.contains("load generator kept up"));
    }

    #[test]
    fn a_machine_that_changed_its_speed_gets_a_sentence() {
        assert_eq!(notes(&numbers()), Vec::<String>::new());
        let mut slower = numbers();
        slower.protected.outcome.origin_time = origin_time(0.9, 6.5);
        let text = text(&slower);
        assert!(text.contains("speed changed with Flashweir") && text.contains("+30 %"), "{text}");
        assert!(!text.contains("changed without"), "{text}");
    }

    #[test]
    fn json_has_the_promised_keys_at_the_promised_places() {
        let json = serde_json::to_value(numbers()).unwrap();
        let outcome = [
            "offered",
            "completed",
            "refused",
            "timed_out",
            "goodput_rps",
            "goodput_ratio",
            "useful",
            "busy_share",
            "in_time_share",
            "page_ms_before",
            "page_ms_during",
            "p99_admitted_ms",
        ];
        for key in outcome {
            assert!(json["unprotected"][key].is_number() && json["protected"][key].is_number(), "{key}");
        }
        assert!(json["capacity_rps"].is_number() && json["protected"]["protect_delay_s"].is_number());
        assert!(json["protected"]["release_delay_s"].is_null());
        assert_eq!(json["protected"]["verdict"], "popular");
    }
}
