//! `docs/origins.md`.

use super::{BAR, Belief, CALM_LOAD, FIRST, FoundLimit, Origin, OriginRun, Protection, Report, Row, TARGET};
use crate::trials::spread::{cell, median};
use std::fmt::Write;

/// A part of the busy share that is not in the origin's account is mentioned from here on.
const TAKEN_WORTH_MENTIONING: f64 = 0.005;

impl Report {
    /// The page, in Markdown: every word of it that depends on a number is made from the number.
    #[must_use]
    pub fn page(&self) -> String {
        let parts = [
            self.introduction(),
            self.overview(),
            self.misses(),
            self.details(),
            self.settings(),
            READING.to_owned(),
        ];
        parts.join("\n")
    }

    fn introduction(&self) -> String {
        let mut text = format!(
            "# Real origins\n\nWritten by `make bench-origins`, all rows on one machine; each invocation replaces the rows that it \
             measures (`ONLY=php,wsgi,node,postgres,static`, `OVERLOAD=3`, `ROUNDS`, `SECONDS`).\n\n\
             Machine: {}. {}\n\n",
            self.machine, self.placement
        );
        for program in &self.programs {
            let _ = writeln!(text, "- {program}");
        }
        text
    }

    fn overview(&self) -> String {
        let settled = self.table(|run| run.settled.useful());
        let first = self.table(|run| run.first.useful());
        format!(
            "## Useful share, from the third second of the crowd on\n\nMedian [least–most] of the rounds; the bar for Flashweir is {BAR}.\n\n{settled}\n\
             ## Useful share of the first {} seconds of the crowd\n\n{first}\n{}",
            FIRST.as_secs(),
            self.gaps()
        )
    }

    fn table(&self, of: fn(&OriginRun) -> f64) -> String {
        let names = Protection::ALL.map(Protection::name).join(" | ");
        let mut text =
            format!("| origin | crowd | rounds | {names} |\n|---|---:|---:|---:|---:|---:|---:|\n");
        for row in &self.rows {
            let cells = Protection::ALL.map(|protection| cell(&row.values(protection, of))).join(" | ");
            let _ =
                writeln!(text, "| {} | {}× | {} | {cells} |", row.origin.name(), row.overload, row.rounds);
        }
        text
    }

    /// Lists the rows, protections and origins that were not measured.
    fn gaps(&self) -> String {
        let mut text = String::new();
        for missing in self.rows.iter().flat_map(|row| row.missing.iter()) {
            let _ = writeln!(text, "Not measured: {missing}.\n");
        }
        for origin in Origin::ALL {
            if !self.rows.iter().any(|row| row.origin == origin) {
                let _ = writeln!(text, "Not measured yet: {}.\n", origin.name());
            }
        }
        text
    }

    /// Rows in which Flashweir is below the bar, and the use of its time.
    fn misses(&self) -> String {
        let mut text = String::from("## What was missed\n\n");
        let mut missed = false;
        for row in &self.rows {
            let useful = row.values(Protection::Flashweir, |run| run.settled.useful());
            let Some(ours) = median(useful).filter(|useful| *useful < BAR) else { continue };
            missed = true;
            let share =
                |of: fn(&OriginRun) -> f64| median(row.values(Protection::Flashweir, of)).unwrap_or_default();
            let (busy, in_time) = (share(|run| run.settled.busy), share(|run| run.settled.in_time));
            let what = match row.origin {
                Origin::Static => {
                    ["of the link's rate was unused", "of the bytes came too late or were sent again"]
                }
                _ => ["of the time the origin had no work", "of its completions were too late"],
            };
            let _ = write!(
                text,
                "- {}, {}×: {ours:.3}. {:.3} {}, {:.3} {}.",
                row.origin.name(),
                row.overload,
                1.0 - busy,
                what[0],
                1.0 - in_time,
                what[1]
            );
            let taken = share(|run| run.taken.unwrap_or_default());
            if taken >= TAKEN_WORTH_MENTIONING {
                let _ = write!(text, " Of the core's busy share {taken:.3} is not in the origin's account.");
            }
            let best = median(row.values(Protection::Haproxy, |run| run.settled.useful()));
            if let Some((best, found)) = best.zip(row.found.as_ref()) {
                let _ = write!(text, " `maxconn {}` came to {best:.3}.", found.maxconn);
            }
            let beliefs: Vec<&Belief> = row.runs.iter().filter_map(|run| run.belief.as_ref()).collect();
            for (belief, round) in beliefs.iter().zip(1..) {
                let _ = write!(text, " Round {round}: {}.", belief.in_words());
            }
            text.push('\n');
        }
        if !missed {
            let _ = writeln!(text, "Flashweir is at or above {BAR} in every row.");
        }
        text
    }

    fn details(&self) -> String {
        let mut text = String::from("## Each origin\n\n");
        for row in &self.rows {
            text.push_str(&details(row));
        }
        text
    }

    fn settings(&self) -> String {
        let mut text = String::from(
            "## The static limits that were found\n\nThe search tries `maxconn` first, then `timeout queue` with the best `maxconn`, each for a short crowd of three \
             times the capacity; where the best is the lowest or the highest tried, it goes on beyond.\n\n",
        );
        for origin in Origin::ALL {
            let Some(found) = self.found(origin) else { continue };
            let _ = writeln!(text, "- {}: {}", origin.name(), found.in_words());
        }
        text
    }
}

fn details(row: &Row) -> String {
    let rates: Vec<String> = row.capacity_rps.iter().map(|rate| format!("{rate:.1}")).collect();
    let [calm_s, crowd_s] = row.lengths_s;
    let mut text = format!(
        "### {}, {}×\n\n{calm_s} s of calm at {CALM_LOAD} of the capacity, then a crowd of {crowd_s} s. Capacity before each round: {} requests/s.\n\n\
         | through | busy × in time | refused | left | failed | p99 of admitted | refused in calm | not in the origin's account |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
        row.origin.name(),
        row.overload,
        rates.join(", ")
    );
    for run in &row.runs {
        let counts = run.counts;
        let dash = || "–".to_owned();
        let _ = writeln!(
            text,
            "| {}{} | {:.3} × {:.3} | {:.2} | {:.2} | {:.2} | {} | {} | {} |",
            run.protection.name(),
            if run.is_spoilt { " (the machine did not keep up)" } else { "" },
            run.settled.busy,
            run.settled.in_time,
            counts.refused,
            counts.left,
            counts.failed,
            counts.p99_admitted_ms.map_or_else(dash, |ms| format!("{ms:.0} ms")),
            run.refused_in_calm,
            run.taken.map_or_else(dash, |taken| format!("{taken:.3}")),
        );
    }
    text.push('\n');
    for belief in row.runs.iter().filter_map(|run| run.belief.as_ref()) {
        let _ = writeln!(text, "- What Flashweir believed: {}.", belief.in_words());
    }
    text.push('\n');
    text
}

impl Belief {
    /// The medians and the spread, in one line.
    pub(crate) fn in_words(&self) -> String {
        let spread = |[least, median, most]: [f64; 3], digits: usize| {
            format!("{median:.digits$} ({least:.digits$}–{most:.digits$})")
        };
        let rules: Vec<String> =
            self.rules.iter().map(|(rule, share)| format!("`{rule}` {:.0} %", share * 100.0)).collect();
        format!(
            "limit {}, knee {}, capacity {}/s, p95 at the origin {} s, in flight {}, waiting {}; rule {}",
            spread(self.limit, 0),
            spread(self.knee, 1),
            spread(self.capacity_rps, 1),
            spread(self.response_p95_s, 2),
            spread(self.in_flight, 0),
            spread(self.waiting, 0),
            rules.join(", ")
        )
    }
}

impl FoundLimit {
    /// The setting, and everything that was tried.
    pub(crate) fn in_words(&self) -> String {
        let trials: Vec<String> =
            self.trials.iter().map(|(setting, useful)| format!("{setting}: {useful:.3}")).collect();
        let edge = if self.is_at_edge { " **The best is at the edge of what was tried.**" } else { "" };
        format!(
            "**maxconn {}, timeout queue {} ms**.{edge} Tried: {}.",
            self.maxconn,
            self.queue_timeout_ms,
            trials.join("; ")
        )
    }
}

const READING: &str = "## How to read it

- *Useful* of an origin on its core: the share of the time in which the core was not idle, times the share of its completions that reached a client \
within one second. All of an origin's processes run on that core only, and nothing else was started there. The application counts a completion when its work is \
done, also for a client that has left. The last column is the part of the busy share that the scheduler's account of the origin's processes does not show \
(interrupts, other programs): useful is less by that at most.
- *Useful* of the link: the bytes that answers in time need at the least (body, head, and the headers of full frames), over the link's rate. *Busy* is the \
bytes that it carried, over the same.
- The loads are multiples of what the origin completes in a closed loop right before the round. Arrivals are a Poisson process; each client comes \
from an address with a connection of its own, asks once, and leaves after one second.
- Each run has a fresh origin and a fresh protection. Flashweir has its defaults and the origin's address; Envoy has the settings of its documentation's example.
- *Left*: the client had no answer within its second. *p99 of admitted* counts such a client with that second.
";

/// The target is written as a word in [`READING`].
const _: () = assert!(TARGET.as_secs() == 1 && TARGET.subsec_nanos() == 0);

#[cfg(test)]
mod tests {
    use super::super::{Counts, Plan, Share};
    use super::*;

    fn run(protection: Protection, busy: f64, in_time: f64) -> OriginRun {
        let counts = Counts { refused: 0.6, left: 0.01, failed: 0.0, p99_admitted_ms: Some(640.0) };
        let plan = Plan {
            limit: 6.0,
            knee: 3.4,
            capacity_rps: 31.0,
            response_p95_s: 0.21,
            in_flight: 5.0,
            waiting: 12.0,
            rule: "target".to_owned(),
        };
        OriginRun {
            protection,
            first: Share { busy: 0.9, in_time: 0.5 },
            settled: Share { busy, in_time },
            taken: Some(0.01),
            counts,
            refused_in_calm: 0,
            belief: Belief::of(&[plan]).filter(|_| protection == Protection::Flashweir),
            is_spoilt: protection == Protection::Nothing,
        }
    }

    fn report() -> Report {
        let found = FoundLimit {
            maxconn: 4,
            queue_timeout_ms: 500,
            trials: vec![("maxconn 4, timeout queue 500 ms".to_owned(), 0.98)],
            is_at_edge: true,
        };
        let row = |origin, ours, missing| Row {
            origin,
            overload: 3.0,
            lengths_s: [5, 15],
            rounds: 1,
            capacity_rps: vec![30.2],
            found: Some(found.clone()),
            runs: vec![
                run(Protection::Nothing, 1.0, 0.0),
                run(Protection::Flashweir, ours, 1.0),
                run(Protection::Haproxy, 0.99, 1.0),
            ],
            missing,
        };
        Report {
            machine: "a machine".to_owned(),
            placement: "The origin had core 0.".to_owned(),
            programs: vec!["PHP 8".to_owned()],
            rows: vec![
                row(Origin::Php, 0.95, vec!["Envoy before php: the program `envoy` is missing".to_owned()]),
                row(Origin::Node, 0.98, Vec::new()),
            ],
        }
    }

    #[test]
    fn a_page_with_a_miss_and_a_gap() {
        insta::assert_snapshot!(report().page());
    }

    #[test]
    fn only_what_is_below_the_bar_is_missed() {
        let mut report = report();
        let missed = report.misses();
        assert!(
            missed.contains("PHP-FPM, 8 workers, 3×: 0.950. 0.050 of the time") && !missed.contains("Node"),
            "{missed}"
        );
        report.rows.remove(0);
        assert!(report.misses().contains("at or above 0.97 in every row"), "{}", report.misses());
    }
}
