//! Goal: what `flashweir load` makes of a result is what a script and a gate can rely on: assertions and
//! their exit codes, files, shards that add up to the whole, comparisons. Method: the real binary, loopback
//! only.
//!
//! Twin in virtual time of the tests under load: `load`, `the_books_always_add_up`.

use crate::binary::{Origin, command, load, text};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, SystemTime};

/// So generous that nothing times out on a busy machine, and offered counts depend on the schedule alone.
const PATIENT: [&str; 4] = ["--timeout", "60s", "--target", "60s"];

#[test]
fn assertions_decide_the_exit_code() {
    let origin = Origin::start(0.0);
    let run = |assertions: &[&str]| {
        let mut options = vec![origin.url.as_str(), "--rate", "40", "--duration", "1s"];
        options.extend(PATIENT);
        assertions.iter().for_each(|assertion| options.extend(["--assert", assertion]));
        load(&options)
    };
    let output = run(&["goodput_ratio >= 99%", "errors == 0", "p99 < 60s", "all.refused == 0"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let output = run(&["goodput_ratio >= 99%", "p99 < 1us", "refused > 0", "refusal_p50 < 1h"]);
    let said = text(&output.stderr);
    let failed: Vec<_> = said.lines().filter(|line| line.starts_with("assertion failed: ")).collect();
    assert_eq!((output.status.code(), failed.len()), (Some(1), 3), "{said}");
    assert!(failed[0].starts_with("assertion failed: p99 < 1us: p99 is "), "{said}");
    assert_eq!(failed[1], "assertion failed: refused > 0: refused is 0");
    assert_eq!(failed[2], "assertion failed: refusal_p50 < 1h: nothing was measured");
    assert!(text(&output.stdout).starts_with("offered"), "the result is printed all the same");
}

#[test]
fn an_assertion_that_cannot_be_meant_is_refused_before_the_run() {
    let check = |assertion: &str, wanted: &str| {
        // No server listens there: a run would report that instead.
        let output = load(&["http://127.0.0.1:1/", "--rate", "5", "--assert", assertion]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{assertion}: {said}");
        assert!(said.contains(wanted), "{assertion}: {said:?} lacks {wanted:?}");
    };
    check("p99 < 500", "write 500ms");
    check("p98 < 500ms", "there is no metric \"p98\"");
    check("buyers.p99 < 500ms", "there is no class \"buyers\", only all");
    check("recovery < 10s", "--crowd-window");
}

/// A table of seconds of every class: every line as wide as the header, and the sums those of the JSON.
#[test]
fn csv_adds_up_to_the_json() {
    let origin = Origin::start(0.0);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.csv");
    let mut options = vec![origin.url.as_str(), "--rate", "60", "--duration", "2s", "--json", "--csv"];
    options.push(file.to_str().unwrap());
    options.extend(PATIENT);
    let output = load(&options);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    let mut reader = csv::Reader::from_path(&file).unwrap();
    let header = reader.headers().unwrap().clone();
    let place = |name: &str| header.iter().position(|column| column == name).unwrap();
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    for column in ["offered", "unique_offered", "completed", "goodput", "refused", "errors", "body_bytes"] {
        for class in ["total", "all"] {
            let of_class = lines.iter().filter(|line| &line[place("class")] == class);
            let sum: u64 = of_class.map(|line| line[place(column)].parse::<u64>().unwrap()).sum();
            assert_eq!(Some(sum), json[column].as_u64(), "{column} of {class}");
        }
    }
}

/// Two processes that know nothing of each other send the schedule that one would have sent.
#[test]
#[ignore = "real load: make test-load"]
fn two_shards_add_up_to_the_whole_under_load() {
    let origin = Origin::start(0.0);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let start_at = SystemTime::now() + Duration::from_secs(5);
    let start_at = start_at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().to_string();
    let run = |shard: &str, out: &Path, more: &[&str]| {
        let mut options = vec![origin.url.as_str(), "--rate", "80", "--duration", "3s", "--seed", "11"];
        options.extend(["--shard", shard, "--out", out.to_str().unwrap()]);
        options.extend(more);
        options.extend(PATIENT);
        command(&[]).args(options).spawn().unwrap()
    };
    let (one, two, whole) = (file("one.json"), file("two.json"), file("whole.json"));
    let together = ["--start-at", start_at.as_str()];
    let shards = [run("1/2", &one, &together), run("2/2", &two, &together)];
    shards.into_iter().for_each(ended_well);
    ended_well(run("1/1", &whole, &[]));

    let merged = load(&["merge", path(&two), path(&one), "--json", "--assert", "offered > 100"]);
    assert!(merged.status.success(), "{merged:?}");
    assert!(!text(&merged.stderr).contains("missing"), "{merged:?}");
    let merged: serde_json::Value = serde_json::from_slice(&merged.stdout).unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&whole).unwrap()).unwrap();
    for key in ["offered", "unique_offered", "completed"] {
        assert_eq!(merged[key], whole[key], "{key}");
    }
    let per_second = |result: &serde_json::Value| -> Vec<_> {
        let series = result["series"].as_array().unwrap();
        series.iter().map(|second| second["offered"].as_u64().unwrap()).collect()
    };
    assert_eq!(per_second(&merged), per_second(&whole));
    let measured = |result: &serde_json::Value| -> u64 {
        let pairs = result["histograms"]["latency_us"].as_array().unwrap();
        pairs.iter().map(|pair| pair[1].as_u64().unwrap()).sum()
    };
    assert_eq!(Some(measured(&merged)), whole["completed"].as_u64());

    let alone = load(&["merge", path(&two), "--assert", "offered > 100000"]);
    let said = text(&alone.stderr);
    assert_eq!(alone.status.code(), Some(1));
    assert!(said.contains("shard 1/2 is missing: the sum is not the whole run"), "{said}");
    assert!(said.contains("assertion failed: offered > 100000: offered is "), "{said}");
    let twice = load(&["merge", path(&two), path(&two)]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(text(&twice.stderr).contains("are both of shard 2/2"), "{twice:?}");
}

#[test]
#[ignore = "real load: make test-load"]
fn compare_tells_a_slower_server_from_a_faster_one_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let (fast, slow) = (directory.path().join("fast.json"), directory.path().join("slow.json"));
    for (work_ms, file) in [(0.0, &fast), (40.0, &slow)] {
        let origin = Origin::start(work_ms);
        let mut options = vec![origin.url.as_str(), "--rate", "12", "--duration", "6s", "--out", path(file)];
        options.extend(PATIENT);
        let output = load(&options);
        assert!(output.status.success(), "{output:?}");
    }
    let table = load(&["compare", path(&fast), path(&slow)]);
    let said = text(&table.stdout);
    assert_eq!(table.status.code(), Some(0), "{table:?}");
    let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(line("p50 ").ends_with("worse") && said.contains("better, worse: beyond the noise"), "{said}");
    let json = load(&["compare", path(&slow), path(&fast), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["totals"]["p50"]["verdict"], "better", "{json}");
    assert!(json["totals"]["p50"]["ratio"].as_f64().unwrap() < 1.0, "{json}");
}

#[test]
fn files_that_are_no_results_are_named_with_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let bad = directory.path().join("bad.json");
    std::fs::write(&bad, r#"{"run": {"format": 1, "url": 5}}"#).unwrap();
    let check = |options: &[&str], wanted: &str| {
        let output = load(options);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(wanted), "{said:?} lacks {wanted:?}");
    };
    check(
        &["compare", path(&bad), path(&bad)],
        "bad.json: not a result of flashweir load: run.url: invalid type",
    );
    check(&["merge", "not-there.json"], "not-there.json: cannot be read: ");
}

fn ended_well(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}
