//! Goal: every scenario in docs/simulator.md is one and does what it says, and every committed file is one.
//! Method: each is read, those of the manual also run, as `flashweir sim` does.

use crate::scenario::{Scenario, Settings, Sheet, Statistic};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_scenario_in_the_manual_meets_its_ranges() {
    let manual = std::fs::read_to_string(root().join("docs/simulator.md")).unwrap();
    let blocks: Vec<&str> = manual.split("```toml scenario\n").skip(1).collect();
    assert!(blocks.len() >= 2, "{} blocks", blocks.len());
    for block in blocks {
        let text = block.split("```").next().unwrap();
        let scenario = Scenario::from_toml(text, "docs/simulator.md", &Settings::parse(["seeds=1"]).unwrap());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let outcome = flashweir_sim::request::run(&scenario.run(1)).unwrap();
        let sheet = Sheet::of(&scenario, &[outcome]);
        let missed: Vec<_> = sheet.missed().map(|line| (line.name(), line.summary)).collect();
        assert!(missed.is_empty(), "{}: {missed:?}", scenario.title());
    }
    for statistic in Statistic::all() {
        assert!(manual.contains(&format!("`{}`", statistic.name)), "the manual lacks {}", statistic.name);
    }
}

#[test]
fn every_committed_scenario_is_accepted() {
    let files = std::fs::read_dir(root().join("scenarios")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    assert!(files.len() >= 3);
    for file in files {
        Scenario::load(&file, &Settings::default()).unwrap();
    }
}
