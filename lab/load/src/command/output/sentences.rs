//! Findings that a table cannot show well, a sentence each.

use crate::command::metric::seconds;
use crate::report::number;
use crate::{LoadResult, RunFacts};

/// The sentences of a result, in the order people ask.
pub(super) fn of(result: &LoadResult) -> Vec<String> {
    let mut sentences = vec![rates(result)];
    sentences.extend(retries(result));
    sentences.push(transfer(result));
    sentences.extend(recovery(result));
    sentences.extend(self_similarity(result));
    sentences.extend(part(&result.run));
    sentences
}

fn rates(result: &LoadResult) -> String {
    let (totals, seconds) = (&result.totals, seconds(result));
    let ratio =
        totals.goodput_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0));
    if seconds <= 0.0 {
        return format!("goodput: {ratio} of requests");
    }
    let rate = |count: u64| number(count as f64 / seconds, 1);
    format!(
        "goodput: {ratio} of requests; offered {}/s, goodput {}/s over {}",
        rate(totals.offered),
        rate(totals.goodput),
        time(seconds),
    )
}

fn retries(result: &LoadResult) -> Option<String> {
    let totals = &result.totals;
    let again = totals.offered.checked_sub(totals.unique_offered).filter(|again| *again > 0)?;
    let factor = totals.retry_amplification?;
    Some(format!(
        "retries: {} tries were made again, {factor:.2} tries for each request",
        number(again as f64, 0)
    ))
}

fn transfer(result: &LoadResult) -> String {
    let bytes = result.totals.body_bytes as f64;
    let seconds = seconds(result);
    let rate = if seconds > 0.0 { format!(", {}/s", size(bytes / seconds)) } else { String::new() };
    let counts = &result.connections;
    let connections = [
        ("opened", Some(counts.opened)),
        ("reused by requests", above_zero(counts.reused)),
        ("failed", above_zero(counts.failed)),
        ("given up", above_zero(counts.given_up)),
        ("SYN packets sent again", above_zero(counts.syn_retransmissions)),
    ];
    let connections = connections
        .into_iter()
        .filter_map(|(what, count)| Some(format!("{what}: {}", number(count? as f64, 0))));
    format!("bodies: {}{rate}; connections {}", size(bytes), connections.collect::<Vec<_>>().join(", "))
}

fn above_zero(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

fn recovery(result: &LoadResult) -> Option<String> {
    let crowd = result.crowd?;
    let recovered = match result.recovery {
        None => {
            "too little was seen before or after it, or too little served before, to tell whether the target recovered".to_owned()
        }
        Some(recovery) => match recovery.seconds {
            Some(seconds) if seconds <= 0.0 => "goodput and p99 were as before at once".to_owned(),
            Some(seconds) => format!("goodput and p99 were as before {} after it", time(seconds)),
            None => format!(
                "goodput and p99 were never as before in the {} after it (a metastable failure?)",
                time(recovery.watched_s)
            ),
        },
    };
    Some(format!(
        "recovery: the crowd was there from {} to {}; {recovered}",
        time(crowd.from_s),
        time(crowd.to_s)
    ))
}

fn self_similarity(result: &LoadResult) -> Option<String> {
    let hurst = result.hurst.as_ref()?;
    Some(format!("arrivals: H = {:.2} ({:.2} to {:.2}), {}", hurst.h, hurst.low, hurst.high, hurst.estimator))
}

/// The whole of which this result is a part.
fn part(run: &RunFacts) -> Option<String> {
    let is_part = run.shards.iter().any(|shard| shard != "1/1");
    let shards = is_part.then(|| format!("shards: {}", run.shards.join(", ")));
    let interrupted = run.interrupted.then(|| {
        format!("interrupted after {} of {}", time(run.length_s.min(run.duration_s)), time(run.length_s))
    });
    let parts: Vec<_> = shards.into_iter().chain(interrupted).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn time(seconds: f64) -> String {
    let decimals = usize::from(seconds.fract() > 0.05 && seconds < 1000.0);
    format!("{} s", number(seconds, decimals))
}

/// Bytes in thousands, as networks count.
fn size(bytes: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let unit = UNITS.into_iter().find(|(_, size)| bytes >= *size);
    unit.map_or_else(|| format!("{bytes:.0} B"), |(unit, size)| format!("{:.1} {unit}", bytes / size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;
    use crate::{CrowdWindow, Recovery};

    #[test]
    fn the_recovery_says_when_or_never_or_why_nothing_is_known() {
        let mut result = sample::result();
        assert_eq!(recovery(&result), None);
        result.crowd = Some(CrowdWindow { from_s: 10.0, to_s: 20.5 });
        let said = |result: &LoadResult| recovery(result).unwrap();
        assert!(said(&result).contains("from 10 s to 20.5 s; too little was seen"), "{}", said(&result));
        let judged = |seconds| {
            Some(Recovery { goodput_ratio_before: 1.0, p99_before_ms: 9.0, seconds, watched_s: 12.0 })
        };
        result.recovery = judged(Some(3.0));
        assert!(said(&result).ends_with("as before 3 s after it"), "{}", said(&result));
        result.recovery = judged(Some(0.0));
        assert!(said(&result).ends_with("as before at once"), "{}", said(&result));
        result.recovery = judged(None);
        assert!(said(&result).contains("never as before in the 12 s after it"), "{}", said(&result));
    }

    #[test]
    fn parts_and_interruptions_are_told() {
        let mut result = sample::result();
        assert_eq!(part(&result.run), None);
        result.run.shards = vec!["1/3".to_owned(), "3/3".to_owned()];
        result.run.interrupted = true;
        result.run.duration_s = 4.0;
        assert_eq!(part(&result.run).unwrap(), "shards: 1/3, 3/3; interrupted after 4 s of 10 s");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            [size(999.0), size(1_200.0), size(3.4e6), size(5e12)],
            ["999 B", "1.2 kB", "3.4 MB", "5000.0 GB"]
        );
    }
}
