//! The statistics as JSON, for other programs.

use super::judged::Judged;
use serde_json::{Value, json};

/// One object in one line.
pub(super) fn text(judged: &Judged<'_>) -> serde_json::Result<String> {
    let lines: Vec<Value> = judged
        .sheet
        .lines
        .iter()
        .map(|line| {
            json!({
                "statistic": line.name(),
                "mean": line.summary.map(|summary| summary.mean),
                "half_width_95": line.summary.and_then(|summary| summary.half_width),
                "values": line.values,
                "accepted": line.accepted.as_ref().map(ToString::to_string),
                "ok": line.is_ok(),
            })
        })
        .collect();
    let hashes: Vec<String> =
        judged.outcomes.iter().map(|outcome| format!("{:016x}", outcome.event_hash)).collect();
    let whole = json!({
        "file": judged.file,
        "title": judged.scenario.title(),
        "duration_s": judged.scenario.length().as_secs_f64(),
        "seeds": judged.scenario.seeds(),
        "event_hashes": hashes,
        "events": judged.outcomes.iter().map(|outcome| outcome.events).sum::<u64>(),
        "statistics": lines,
        "ok": judged.sheet.is_accepted(),
    });
    Ok(serde_json::to_string(&whole)? + "\n")
}
