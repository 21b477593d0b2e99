//! Goal: the committed scenarios hold, and fail when the controller is taken away. Method: one seed of
//! each, as `flashweir sim` runs it; several seeds where one shows too little.

use crate::scenario::{Scenario, Settings, Sheet};
use std::path::PathBuf;

fn sheet(name: &str, settings: &[&str]) -> Sheet {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let settings = Settings::parse(["seeds=1"].iter().chain(settings)).unwrap();
    let scenario = Scenario::load(&path, &settings).unwrap();
    let outcomes: Vec<_> = scenario
        .seeds()
        .into_iter()
        .map(|seed| flashweir_sim::request::run(&scenario.run(seed)).unwrap())
        .collect();
    let sheet = Sheet::of(&scenario, &outcomes);
    for line in &sheet.lines {
        println!("{name} {} {:?} {:?}", line.name(), line.values, line.is_ok());
    }
    sheet
}

fn missed(sheet: &Sheet) -> Vec<String> {
    sheet.missed().map(|line| line.name()).collect()
}

#[test]
fn a_crowd_is_held_and_collapses_without_the_controller() {
    assert_eq!(missed(&sheet("crowd.toml", &[])), [""; 0]);
    let without = missed(&sheet("crowd.toml", &["controller.mode=none"]));
    assert!(without.contains(&"crowd.useful_ratio".to_owned()), "{without:?}");
    assert_eq!(missed(&sheet("crowd_without.toml", &[])), [""; 0]);
}

#[test]
fn a_retry_storm_ends_and_stays_without_the_controller() {
    assert_eq!(missed(&sheet("retry_storm.toml", &[])), [""; 0]);
    let without = missed(&sheet("retry_storm.toml", &["controller.mode=none"]));
    assert!(without.contains(&"after.goodput_ratio".to_owned()), "{without:?}");
}

#[test]
fn a_crowd_behind_a_narrow_link_is_held_and_starves_without_the_controller() {
    assert_eq!(missed(&sheet("packets.toml", &[])), [""; 0]);
    assert_eq!(missed(&sheet("packets.toml", &["seed=2"])), [""; 0]);
    let without = missed(&sheet("packets.toml", &["controller.mode=none"]));
    assert!(without.contains(&"crowd.goodput_rps".to_owned()), "{without:?}");
}

#[test]
fn a_crowd_is_held_by_the_sentry_and_collapses_without_it() {
    assert_eq!(missed(&sheet("sentry.toml", &[])), [""; 0]);
    assert_eq!(missed(&sheet("sentry.toml", &["seed=2"])), [""; 0]);
    let without = missed(&sheet("sentry.toml", &["controller.mode=none"]));
    assert!(without.contains(&"crowd.goodput_rps".to_owned()), "{without:?}");
}

#[test]
fn gold_is_served_whatever_comes_and_bronze_gets_its_guarantee_unless_there_are_no_classes() {
    assert_eq!(missed(&sheet("classes.toml", &["seeds=5"])), [""; 0]);
    let alike = missed(&sheet("classes.toml", &["class[0].revenue=1", "class[1].revenue=1"]));
    assert!(alike.contains(&"storm.gold.goodput_ratio".to_owned()), "{alike:?}");
    let unguarded = missed(&sheet("classes.toml", &["class[2].guaranteed_rate=0"]));
    assert!(unguarded.contains(&"storm.bronze.goodput_rps".to_owned()), "{unguarded:?}");
}

/// Ten downloads beside datagrams of nine tenths of the link: the worst of three seeds.
#[test]
fn purge_gives_downloads_their_share_beside_a_flood_and_drop_tail_does_not() {
    for seed in ["seed=1", "seed=2", "seed=3"] {
        assert_eq!(missed(&sheet("purge.toml", &[seed])), [""; 0], "{seed}");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/purge.toml");
    let text = std::fs::read_to_string(path)
        .unwrap()
        .replace("discipline = \"purge\"\necn = true\ntarget_packets = 50", "");
    let scenario = Scenario::from_toml(&text, "purge.toml", &Settings::parse(["seeds=1"]).unwrap()).unwrap();
    let outcomes = [flashweir_sim::request::run(&scenario.run(scenario.seeds()[0])).unwrap()];
    let without = missed(&Sheet::of(&scenario, &outcomes));
    assert_eq!(without.iter().filter(|name| name.contains("download")).count(), 10, "{without:?}");
}

/// Goal: people are served beside any crawler, found within ten seconds, and only where clients are compared.
#[test]
fn people_are_served_beside_crawlers_and_not_by_the_sentry_alone() {
    for name in ["crawler_10000.toml", "crawler_100.toml", "crawler_one.toml", "crawler_office.toml"] {
        assert_eq!(missed(&sheet(name, &[])), [""; 0], "{name}");
    }
    let without = missed(&sheet("crawler_10000.toml", &["controller.mode=sentry"]));
    assert!(without.contains(&"crawl.people.goodput_ratio".to_owned()), "{without:?}");
    assert!(without.contains(&"found.crawler.demoted_ratio".to_owned()), "{without:?}");
}
