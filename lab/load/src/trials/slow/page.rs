//! `docs/slow-origins.md`.

use super::{BAR, EARLY_PER_REFUSED, EARLY_S, Origin, Phase, PhaseResult, Report, Row, SlowRun};
use crate::trials::origins::{FIRST, Protection, TARGET};
use crate::trials::spread::cell;
use std::fmt::Write;

impl Phase {
    /// Its name in the tables.
    const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Crowd => "crowd",
            Self::Loss => "loss",
        }
    }
}

impl Report {
    /// The page, in Markdown: every word of it that depends on a number is made from the number.
    #[must_use]
    pub fn page(&self) -> String {
        let parts = [
            self.introduction(),
            self.refusals(),
            self.worth(),
            self.gaps(),
            self.misses(),
            self.details(),
            self.settings(),
            reading(),
        ];
        parts.join("\n")
    }

    fn introduction(&self) -> String {
        let keys = Origin::ALL.map(Origin::key).join(",");
        let mut text = format!(
            "# Origins whose requests differ\n\nWritten by `make bench-slow`, all rows on one machine; each invocation replaces the rows \
             that it measures (`ONLY={keys}`, `ROUNDS`, `SECONDS`). [Slow requests](slow-requests.md) says what happens to them.\n\n\
             Machine: {}. {}\n\n",
            self.machine, self.placement
        );
        for program in &self.programs {
            let _ = writeln!(text, "- {program}");
        }
        text
    }

    fn refusals(&self) -> String {
        let refused = |phase: &PhaseResult| {
            format!("{} of {}", phase.sum(|kind| kind.refused), phase.sum(|kind| kind.offered))
        };
        let calm = self.table(|row, protection| {
            let runs = row.runs.iter().filter(|run| run.protection == protection);
            let cells: Vec<String> = runs.filter_map(|run| run.phase(Phase::Calm)).map(refused).collect();
            if cells.is_empty() { "–".to_owned() } else { cells.join("; ") }
        });
        format!(
            "## Refused in calm\n\nRequests of all kinds, each round. The bar for Flashweir is none; in its first {EARLY_S} s it may refuse one of {EARLY_PER_REFUSED}.\n\n{calm}"
        )
    }

    fn worth(&self) -> String {
        let of = |phase| {
            self.table(move |row, protection| cell(&row.values(protection, phase, PhaseResult::worth)))
        };
        format!(
            "## Useful in the crowd\n\nMedian [least–most] of the rounds, from the third second on. The bars for Flashweir are {BAR}, and {BAR} of \
             the best `maxconn`. Of the origins that only wait ({}) it is the share of requests that were answered in time.\n\n{}\n\
             ## Useful while part of the capacity is gone\n\n{}",
            Origin::ALL
                .into_iter()
                .filter(|origin| !origin.is_work())
                .map(Origin::name)
                .collect::<Vec<_>>()
                .join(", "),
            of(Phase::Crowd),
            of(Phase::Loss)
        )
    }

    /// A line for each origin, a column for each protection.
    fn table(&self, of: impl Fn(&Row, Protection) -> String) -> String {
        let names = Protection::ALL.map(Protection::name).join(" | ");
        let mut text = format!("| origin | {names} |\n|---|---:|---:|---:|---:|\n");
        for row in &self.rows {
            let cells = Protection::ALL.map(|protection| of(row, protection)).join(" | ");
            let _ = writeln!(text, "| {} | {cells} |", row.origin.name());
        }
        text
    }

    /// Reasons for empty cells.
    fn gaps(&self) -> String {
        let mut text = String::new();
        for missing in self.rows.iter().flat_map(|row| row.missing.iter()) {
            let _ = writeln!(text, "Not measured: {missing}.\n");
        }
        for origin in Origin::ALL.into_iter().filter(|origin| self.row(*origin).is_none()) {
            let _ = writeln!(text, "Not measured yet: {}.\n", origin.name());
        }
        text
    }

    fn details(&self) -> String {
        let rows = self.rows.iter().map(details);
        format!("## Each origin\n\n{}", rows.collect::<String>())
    }

    fn settings(&self) -> String {
        let mut text = String::from(
            "## The static limits that were found\n\nThe search tries `maxconn` first, then `timeout queue` with the best `maxconn`, each for a short crowd; where the \
             best is the lowest or the highest tried, it goes on beyond. Long requests are in flight from its first second on, and count against `maxconn`.\n\n",
        );
        for row in &self.rows {
            if let Some(found) = &row.found {
                let _ = writeln!(text, "- {}: {}", row.origin.name(), found.in_words());
            }
        }
        text
    }
}

fn details(row: &Row) -> String {
    let lengths: Vec<String> =
        row.lengths_s.iter().map(|(phase, length_s)| format!("{} {length_s} s", phase.name())).collect();
    let mut text = format!("### {}\n\n{}.", row.origin.name(), lengths.join(", "));
    if !row.capacity_rps.is_empty() {
        let rates: Vec<String> = row.capacity_rps.iter().map(|rate| format!("{rate:.1}")).collect();
        let _ = write!(text, " Capacity before each round: {} pages/s.", rates.join(", "));
    }
    text.push_str(
        "\n\n| phase | kind | through | offered | completed | refused | late | failed | p50 | p99 |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (phase, _) in &row.lengths_s {
        let kinds = row.origin.kinds().iter().map(|kind| kind.name);
        kinds.for_each(|kind| row.runs.iter().for_each(|run| line(&mut text, run, *phase, kind)));
    }
    text.push('\n');
    for run in &row.runs {
        let shares: Vec<String> = run.phases.iter().filter_map(share).collect();
        if !shares.is_empty() {
            let _ = writeln!(text, "- {}: busy × in time {}.", through(run), shares.join(", "));
        }
    }
    for run in &row.runs {
        for (phase, belief) in
            run.phases.iter().filter_map(|phase| Some((phase.phase, phase.belief.as_ref()?)))
        {
            let _ = writeln!(text, "- {}, {}: {}.", through(run), phase.name(), belief.in_words());
        }
    }
    text.push('\n');
    text
}

/// The line of one kind in one phase of one run.
fn line(text: &mut String, run: &SlowRun, phase: Phase, kind: &str) {
    let Some(phase) = run.phase(phase) else { return };
    let Some(result) = phase.kinds.iter().find(|result| result.kind == kind) else { return };
    let time = |ms: Option<f64>| match ms {
        None => "–".to_owned(),
        Some(ms) if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        Some(ms) => format!("{ms:.0} ms"),
    };
    let _ = writeln!(
        text,
        "| {} | {kind} | {} | {} | {} | {} | {} | {} | {} | {} |",
        phase.phase.name(),
        through(run),
        result.offered,
        result.completed,
        result.refused,
        result.late,
        result.failed,
        time(result.p50_ms),
        time(result.p99_ms)
    );
}

fn through(run: &SlowRun) -> String {
    let spoilt = if run.is_spoilt { " (the machine did not keep up)" } else { "" };
    format!("{}{spoilt}", run.protection.name())
}

fn share(phase: &PhaseResult) -> Option<String> {
    let share = phase.share?;
    Some(format!("{} {:.3} × {:.3}", phase.phase.name(), share.busy, share.in_time))
}

fn reading() -> String {
    format!(
        "## How to read it

- *Offered* are the requests that began in the phase. *Completed* were answered within {target} s more than their kind takes at an idle origin, *late* were not, \
and their clients left; of streams, *completed* are open when the run ends. The percentiles are of all that were not refused; a client that left counts with the time it waited, and a \
stream with the time until its response began.
- *Useful* of an origin on its core: the share of the time in which the core was not idle, times the share of its completions that reached a client in time, of all \
kinds, from the third second of the phase (in calm from its tenth) on. While another program is on the core, *busy* is the time in which the origin was running or ready to run.
- Pages are offered at multiples of what the origin completes in a closed loop right before the round. In the crowd of an origin that only waits, the rates are three \
times those of the calm, which it carries: nothing is to be refused.
- Loss of capacity: {polls} shares its core with another busy program; of {exports} and {api} half of the worker processes stand still.
- Pages arrive as a Poisson process, long requests at equal distances, as of clients that ask again when they are answered. Each client comes from an address with a connection of \
its own, and asks once. When the phases are over, long polls are answered at once, and count as completed.
- Each run has a fresh origin and a fresh protection. Flashweir has its defaults and the origin's address; Envoy has the settings of its documentation's example. `maxconn` is one \
number for the whole origin, long requests included.
",
        target = TARGET.as_secs(),
        polls = Origin::Polls.name(),
        exports = Origin::Exports.name(),
        api = Origin::Api.name(),
    )
}

/// The third second is written as a word in [`reading`].
const _: () = assert!(FIRST.as_secs() == 3 && EARLY_S == 10);

#[cfg(test)]
mod tests {
    use super::super::{Early, KindResult, Loss};
    use super::*;
    use crate::trials::origins::{Belief, FoundLimit, Plan, Share};

    /// A run in which every phase came to `worth`, and this number of the first kind were refused in calm.
    fn run(origin: Origin, protection: Protection, worth: f64, refused: u64) -> SlowRun {
        let belief = Belief::of(&[Plan {
            limit: 6.0,
            knee: 3.4,
            capacity_rps: 31.0,
            response_p95_s: 0.21,
            in_flight: 5.0,
            waiting: 12.0,
            rule: "target".to_owned(),
        }]);
        let phase = |phase: Phase| PhaseResult {
            phase,
            share: origin.is_work().then_some(Share { busy: worth, in_time: 1.0 }),
            kinds: origin
                .kinds()
                .iter()
                .enumerate()
                .map(|(number, kind)| {
                    let refused = if number == 0 && phase == Phase::Calm { refused } else { 0 };
                    let completed = ((1_000 - refused) as f64 * worth) as u64;
                    KindResult {
                        kind: kind.name.to_owned(),
                        offered: 1_000,
                        completed,
                        refused,
                        late: 1_000 - refused - completed,
                        failed: 0,
                        p50_ms: Some(20.0),
                        p99_ms: Some(20_004.0),
                    }
                })
                .collect(),
            early: (phase == Phase::Calm).then_some(Early { offered: 400, refused: refused.min(1) }),
            belief: belief.clone().filter(|_| protection == Protection::Flashweir),
        };
        let loss = origin.loss().map(|_: Loss| Phase::Loss);
        let phases = [Phase::Calm, Phase::Crowd].into_iter().chain(loss).map(phase).collect();
        SlowRun { protection, phases, is_spoilt: protection == Protection::Envoy }
    }

    fn row(origin: Origin, ours: f64, refused: u64) -> Row {
        Row {
            origin,
            lengths_s: vec![(Phase::Calm, 25), (Phase::Crowd, 15), (Phase::Loss, 10)],
            rounds: 1,
            capacity_rps: vec![150.04],
            found: Some(FoundLimit {
                maxconn: 48,
                queue_timeout_ms: 500,
                trials: vec![("maxconn 48, timeout queue 500 ms".to_owned(), 0.98)],
                is_at_edge: false,
            }),
            runs: vec![
                run(origin, Protection::Nothing, 0.0, 0),
                run(origin, Protection::Flashweir, ours, refused),
                run(origin, Protection::Haproxy, 0.99, 0),
                run(origin, Protection::Envoy, 0.9, 7),
            ],
            missing: Vec::new(),
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        let (machine, placement) = ("a machine".to_owned(), "The origin had core 0.".to_owned());
        Report { machine, placement, programs: vec!["Node 20".to_owned()], rows }
    }

    #[test]
    fn a_page_with_misses_and_gaps() {
        let mut polls = row(Origin::Polls, 0.95, 2);
        polls.missing.push("Envoy before polls: the program `envoy` is missing".to_owned());
        insta::assert_snapshot!(report(vec![polls, row(Origin::Api, 0.98, 0)]).page());
    }

    /// In the first seconds one of a thousand may be refused, later none.
    #[test]
    fn refusals_in_calm_are_missed() {
        let misses = |change: fn(&mut PhaseResult)| {
            let mut row = row(Origin::Pauses, 1.0, 1);
            let runs = row.runs.iter_mut().filter(|run| run.protection == Protection::Flashweir);
            runs.for_each(|run| change(&mut run.phases[0]));
            report(vec![row]).misses()
        };
        let early = misses(|_| ());
        assert!(early.contains("in the first seconds of the calm 1 of 400 requests were refused"), "{early}");
        let allowed = misses(|calm| calm.early = Some(Early { offered: 1_000, refused: 1 }));
        assert!(allowed.contains("Nothing"), "{allowed}");
        let later = misses(|calm| calm.early = Some(Early { offered: 1_000, refused: 0 }));
        assert!(later.contains("in calm 1 of 1000 pages were refused"), "{later}");
    }

    #[test]
    fn a_refusal_at_a_step_that_the_origin_carries_is_missed() {
        let mut row = row(Origin::Model, 1.0, 0);
        assert!(report(vec![row.clone()]).misses().contains("Nothing"));
        let ours = row.runs.iter_mut().find(|run| run.protection == Protection::Flashweir).unwrap();
        ours.phases[1].kinds[1].refused = 3;
        let misses = report(vec![row]).misses();
        assert!(
            misses.contains("at a step that the origin carries 3 of 2000 requests were refused"),
            "{misses}"
        );
    }

    #[test]
    fn a_page_without_rows_claims_nothing() {
        let misses = report(Vec::new()).misses();
        assert!(misses.contains("No row was measured yet.") && !misses.contains("Nothing"), "{misses}");
    }

    #[test]
    fn both_bars_of_the_crowd_are_judged() {
        let misses = report(vec![row(Origin::Streams, 0.955, 0)]).misses();
        assert!(misses.contains("0.955 in the crowd, below 0.97. 0.045 of the time"), "{misses}");
        assert!(misses.contains("below 0.97 of the 0.990 that `maxconn 48`"), "{misses}");
        let misses = report(vec![row(Origin::Streams, 0.965, 0)]).misses();
        assert!(misses.contains("below 0.97.") && !misses.contains("maxconn"), "{misses}");
    }
}
