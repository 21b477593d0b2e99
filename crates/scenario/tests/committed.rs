//! Goal: the committed scenarios hold, and fail when the controller is taken away. Method: one seed of each, as
//! `flashweir sim` runs it.

use flashweir_scenario::{Scenario, Settings, Sheet};
use std::path::PathBuf;

fn sheet(name: &str, settings: &[&str]) -> Sheet {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let settings = Settings::parse(settings.iter().chain(&["seeds=1"])).unwrap();
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
