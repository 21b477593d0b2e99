//! The first facts for a reader: the run, whether to trust it, and the few numbers that matter.

use super::text::{NOTHING, bytes, count, digits, measured, plural, seconds, share};
use crate::report::{KeyFigure, Section, Table, Tone, number};
use crate::{LoadResult, Recovery};

/// The page's heading.
pub(super) fn title(result: &LoadResult) -> String {
    format!("Load on {}", result.run.url)
}

/// One sentence on what was done and what came of it.
pub(super) fn lead(result: &LoadResult) -> String {
    let totals = &result.totals;
    if totals.offered == 0 {
        return format!("Nobody came in {}.", seconds(result.run.length_s));
    }
    format!(
        "{} in {} over {} (seed {}); {} of the requests were answered within {}.",
        plural(totals.unique_offered, "request", "requests"),
        plural(totals.offered, "try", "tries"),
        seconds(sent_s(result)),
        result.run.seed,
        share(totals.goodput, totals.unique_offered),
        target(result),
    )
}

/// The target, if all classes have the same.
fn target(result: &LoadResult) -> String {
    let mut targets = result.run.classes.values().map(|class| class.target_ms);
    match targets.next() {
        Some(first) if targets.all(|other| other == first) => {
            format!("the target of {}", measured(Some(first), "ms"))
        }
        _ => "their targets".to_owned(),
    }
}

/// Length of the arrivals: the schedule, unless it was cut short.
fn sent_s(result: &LoadResult) -> f64 {
    result.run.length_s.min(result.run.duration_s)
}

/// The small print.
pub(super) fn footer() -> String {
    format!("Made by flashweir {} load. The same run as JSON: --json.", env!("CARGO_PKG_VERSION"))
}

/// Warnings about numbers that mislead; `None` without any.
pub(super) fn warnings(result: &LoadResult) -> Option<Section> {
    let mut warnings = Vec::new();
    if result.saturated {
        warnings.push(
            "Generator saturated: it could not keep to its schedule, or ran out of a resource. These \
             figures say more about it than about the target."
                .to_owned(),
        );
    }
    if result.run.interrupted {
        warnings.push(format!(
            "Interrupted: the run ended after {} of a schedule of {}.",
            seconds(sent_s(result)),
            seconds(result.run.length_s)
        ));
    }
    if let Some(parts) = missing_parts(&result.run.shards) {
        warnings.push(parts);
    }
    if result.totals.in_flight > 0 {
        warnings.push(format!(
            "In flight: {} had no outcome when the run ended, and what became of the rest is not the whole truth.",
            plural(result.totals.in_flight, "try", "tries")
        ));
    }
    let section = Section::new("Before you read the numbers");
    (!warnings.is_empty()).then(|| warnings.into_iter().fold(section, Section::warning))
}

/// Says which shards the result has when those are not all, and so not the whole schedule.
fn missing_parts(shards: &[String]) -> Option<String> {
    let of = shards.iter().filter_map(|shard| shard.rsplit_once('/')?.1.parse::<usize>().ok()).max()?;
    (shards.len() < of).then(|| {
        let (here, listed) = (shards.len(), shards.join(", "));
        format!("Part of a schedule, not the whole crowd: {here} of {of} shards ({listed}).")
    })
}

/// The section of numbers in large type.
pub(super) fn numbers(result: &LoadResult) -> Section {
    let section = Section::new("In numbers").key_figures(key_figures(result));
    match &result.recovery {
        Some(recovery) => section.text(recovery_text(recovery)),
        None if result.crowd.is_some() => section.text(
            "A crowd came, but too little was seen before or after it, or too little served before, to tell whether the target recovered.",
        ),
        None => section,
    }
}

fn key_figures(result: &LoadResult) -> Vec<KeyFigure> {
    let totals = &result.totals;
    let of_tries = |part: u64| format!("{} of all tries", share(part, totals.offered));
    let mut figures = vec![
        KeyFigure::new("offered", count(totals.offered)).note(format!(
            "tries, {}/s",
            digits(totals.offered as f64 / sent_s(result).max(f64::MIN_POSITIVE))
        )),
        KeyFigure::new("goodput", count(totals.goodput))
            .note(format!("{} of all requests", share(totals.goodput, totals.unique_offered))),
        KeyFigure::new("refused", count(totals.refused)).note(of_tries(totals.refused)),
        KeyFigure::new("timed out", count(totals.timed_out)).note(of_tries(totals.timed_out)),
        KeyFigure::new("errors", count(totals.errors))
            .note(of_tries(totals.errors))
            .tone(if totals.errors > 0 { Tone::Bad } else { Tone::Plain }),
        KeyFigure::new("latency p99", measured(totals.latency_ms.p99, "ms")).note("of completed tries"),
        KeyFigure::new(
            "retry amplification",
            totals
                .retry_amplification
                .map_or_else(|| NOTHING.to_owned(), |ratio| format!("{} ×", number(ratio, 2))),
        )
        .note("tries for each request"),
        lag_figure(result),
    ];
    if totals.abandoned > 0 {
        figures
            .insert(4, KeyFigure::new("abandoned", count(totals.abandoned)).note(of_tries(totals.abandoned)));
    }
    figures.extend(result.recovery.as_ref().map(recovery_figure));
    figures
}

fn lag_figure(result: &LoadResult) -> KeyFigure {
    let lag = &result.totals.lag_us;
    let (note, tone) = match (result.saturated, lag.count) {
        (true, _) => ("generator saturated", Tone::Bad),
        (false, 0) => ("no try began", Tone::Plain),
        (false, _) => ("generator kept up", Tone::Good),
    };
    KeyFigure::new("lag p99", measured(lag.p99, "µs")).note(note).tone(tone)
}

fn recovery_figure(recovery: &Recovery) -> KeyFigure {
    match recovery.seconds {
        Some(after_s) => {
            KeyFigure::new("recovered", seconds(after_s)).note("after the crowd").tone(Tone::Good)
        }
        None => KeyFigure::new("recovered", "never")
            .note(format!("in {} after the crowd", seconds(recovery.watched_s)))
            .tone(Tone::Bad),
    }
}

fn recovery_text(recovery: &Recovery) -> String {
    let before = format!(
        "Before the crowd {} % of the requests were goodput, and the longest 99th percentile of a second was {} ms.",
        number(recovery.goodput_ratio_before * 100.0, 1),
        digits(recovery.p99_before_ms)
    );
    let after = match recovery.seconds {
        Some(0.0) => "The target was as good as that as soon as the crowd had left.".to_owned(),
        Some(after_s) => {
            format!("The target was as good as that again {} after the crowd had left.", seconds(after_s))
        }
        None => format!(
            "The target was not as good as that again in the {} that were watched after the crowd had left: where \
             retries keep an overload alive without its cause, that is a metastable failure.",
            seconds(recovery.watched_s)
        ),
    };
    format!("{before} {after}")
}

/// The section on what was run, as far as the result knows.
pub(super) fn facts(result: &LoadResult) -> Section {
    let (run, connections) = (&result.run, &result.connections);
    let rate = result.totals.body_bytes as f64 / run.duration_s.max(f64::MIN_POSITIVE);
    let addresses: Vec<_> = run.addresses.iter().map(ToString::to_string).collect();
    let mut table = Table::new("The run itself", ["", ""])
        .row("URL", [run.url.clone()])
        .row("seed", [run.seed.to_string()])
        .row("length of the schedule", [seconds(run.length_s)])
        .row("from the start to the last answer awaited", [seconds(run.duration_s)])
        .row("shards", [run.shards.join(", ")])
        .row("addresses", [addresses.join(", ")])
        .row("connections opened", [count(connections.opened)])
        .row("requests over a connection opened before", [count(connections.reused)])
        .row("connections failed", [count(connections.failed)])
        .row("connections given up", [count(connections.given_up)])
        .row("SYN packets sent again", [count(connections.syn_retransmissions)])
        .row(
            "bodies of whole answers",
            [format!("{}, {}/s", bytes(result.totals.body_bytes as f64), bytes(rate))],
        );
    if let Some(crowd) = result.crowd {
        table = table.row("crowd", [format!("{} to {}", seconds(crowd.from_s), seconds(crowd.to_s))]);
    }
    let section = Section::new("What was run").table(table);
    match &result.hurst {
        Some(hurst) => section.text(format!(
            "How bursty the arrivals were: Hurst parameter {:.2} (95 % between {:.2} and {:.2}); ½ is without \
             memory, 1 fully self-similar. Estimator: {}.",
            hurst.h, hurst.low, hurst.high, hurst.estimator
        )),
        None => section,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_schedule_says_so() {
        let parts =
            |shards: &[&str]| missing_parts(&shards.iter().map(|&s| s.to_owned()).collect::<Vec<_>>());
        assert_eq!((parts(&["1/1"]), parts(&["1/2", "2/2"]), parts(&[])), (None, None, None));
        assert!(parts(&["1/3", "3/3"]).is_some_and(|text| text.contains("2 of 3 shards (1/3, 3/3)")));
    }

    #[test]
    fn a_recovery_is_told_in_words() {
        let recovery =
            |seconds| Recovery { goodput_ratio_before: 0.998, p99_before_ms: 12.3, seconds, watched_s: 20.0 };
        assert!(recovery_text(&recovery(Some(3.0))).contains("again 3 s after"));
        assert!(recovery_text(&recovery(Some(0.0))).contains("as soon as"));
        assert!(recovery_text(&recovery(None)).contains("metastable"));
    }
}
