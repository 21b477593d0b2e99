//! Files of the demo: `report.html`, `data.json` and `series.csv` (beside the children's logs).

use crate::demo::outcome::Visit;
use crate::demo::{Story, document};
use anyhow::Context;
use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes the directory and makes sure that files can be made in it.
pub(crate) fn prepare(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("{}: cannot be made", directory.display()))?;
    write_file(directory, "data.json", "")?;
    Ok(())
}

/// Writes everything; gives the report's path.
pub(crate) fn write(story: &Story) -> anyhow::Result<PathBuf> {
    let directory = &story.options.out;
    write_file(directory, "data.json", &serde_json::to_string_pretty(&data(story))?)?;
    write_file(directory, "series.csv", &csv(story))?;
    write_file(directory, "report.html", &document::html(story)?)
}

pub(super) fn write_file(directory: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

fn data(story: &Story) -> serde_json::Value {
    let overload = story.crowd.overload.as_ref();
    let sightings = story.protected.sightings.iter().map(|sighting| {
        json!({
            "at_s": sighting.at.as_secs_f64(),
            "mode": sighting.mode,
            "cause": sighting.cause,
            "limit": sighting.limit,
        })
    });
    json!({
        "seed": story.options.seed,
        "crowd_multiple": story.options.crowd_multiple,
        "origin_ms": story.options.origin_ms,
        "crowd_starts_s": overload.map(|crowd| crowd.start.as_secs_f64()),
        "crowd_ends_s": overload.map(|crowd| crowd.end.as_secs_f64()),
        "numbers": story.numbers,
        "unprotected": without_distributions(&story.unprotected),
        "protected": without_distributions(&story.protected),
        "sightings": sightings.collect::<Vec<_>>(),
    })
}

/// Counts of the load generator, but for its whole distributions: they are for adding results up, and fifty
/// times as long as all the rest.
fn without_distributions(visit: &Visit) -> serde_json::Value {
    let mut load = json!(visit.load);
    if let Some(load) = load.as_object_mut() {
        load.remove("histograms");
        // Its only class is the total.
        load.remove("classes");
        let seconds = load.get_mut("series").and_then(serde_json::Value::as_array_mut);
        let seconds = seconds.into_iter().flatten().filter_map(serde_json::Value::as_object_mut);
        seconds.for_each(|second| drop(second.remove("latency_buckets")));
    }
    load
}

/// One line for each second of each visit. No value can hold a comma.
fn csv(story: &Story) -> String {
    let mut text =
        "run,second,offered,admitted,completed,goodput,refused,timed_out,errors,latency_p50_ms,latency_p99_ms\n"
            .to_owned();
    for (name, Visit { load, .. }) in [("unprotected", &story.unprotected), ("protected", &story.protected)] {
        for s in &load.totals.series {
            let [p50, p99] = [s.latency_p50_ms, s.latency_p99_ms]
                .map(|value| value.map_or_else(String::new, |ms| format!("{ms:.3}")));
            writeln!(
                text,
                "{name},{},{},{},{},{},{},{},{},{p50},{p99}",
                s.second,
                s.offered,
                document::admitted(s),
                s.completed,
                s.goodput,
                s.refused,
                s.timed_out,
                s.errors,
            )
            .expect("writing to a String cannot fail");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::sample;

    #[test]
    fn the_three_files_hold_the_story() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("new").join("demo");
        prepare(&out).unwrap();
        let report = write(&sample::story(out.clone())).unwrap();

        let html = fs::read_to_string(report).unwrap();
        assert_eq!(html.matches("<figure>").count(), 5);
        assert!(html.contains("protected after 0.44 s") && html.contains("released after 2.33 s"));

        let data: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("data.json")).unwrap()).unwrap();
        assert_eq!(data["numbers"]["protected"]["verdict"], "surge_ok");
        assert_eq!(data["sightings"].as_array().unwrap().len(), 800);
        let visit = &data["protected"];
        assert_eq!(visit["offered"], data["numbers"]["protected"]["offered"]);
        assert!(visit["histograms"].is_null() && visit["classes"].is_null());
        assert!(visit["series"][0]["latency_buckets"].is_null() && visit["series"][0]["offered"].is_u64());

        let csv = fs::read_to_string(out.join("series.csv")).unwrap();
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
        let offered: u64 = csv.lines().filter_map(|line| line.split(',').nth(2)?.parse::<u64>().ok()).sum();
        assert_eq!(offered, 2 * data["numbers"]["protected"]["offered"].as_u64().unwrap());
    }

    #[test]
    fn a_place_that_cannot_hold_the_report_is_found_before_the_work() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let message = prepare(file.path()).unwrap_err().to_string();
        assert!(message.contains("cannot be made"), "{message}");
    }
}
