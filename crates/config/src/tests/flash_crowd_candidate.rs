//! A candidate of the flash-crowd stage: what it becomes, what it takes over from the policy in force, and
//! the one message for each mistake.

use core::time::Duration;

use crate::{Config, FlashCrowd, FlashCrowdMode, Overrides};
use flashweir_admission::flash_crowd::PlannerMode;

const SMALLEST: &str = "upstream.urls = ['http://10.0.0.5:3000']\n";

fn config(text: &str) -> Config {
    let text = format!("{SMALLEST}{text}");
    Config::from_toml(&text, "shop.toml").unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn candidate(text: &str) -> FlashCrowd {
    config(text).flash_crowd_candidate.expect("a candidate")
}

#[test]
fn without_a_word_there_is_none() {
    assert_eq!(config("[flash_crowd]\nmargin = 0.3\n").flash_crowd_candidate, None);
}

#[test]
fn what_it_leaves_out_is_as_in_the_policy_in_force() {
    let live = "[flash_crowd]\nmargin = 0.3\ninterval = '2s'\nhot_spots = false\n";
    let other = candidate(&format!("{live}candidate.mode = 'paper'\n"));
    assert_eq!((other.mode, other.interval), (FlashCrowdMode::Paper, Duration::from_secs(2)));
    assert_eq!((other.margin, other.hot_spots, other.shadow), (0.3, false, true));
    let other = candidate(&format!("{live}[flash_crowd.candidate]\ninterval = '50ms'\nhot_spots = true\n"));
    assert_eq!((other.mode, other.interval.as_millis()), (FlashCrowdMode::Repaired, 50));
    assert!(other.hot_spots);
    // The interval is that of the candidate's mode where none is written.
    let other = candidate("flash_crowd.candidate.mode = 'scoreboard'\n");
    assert_eq!(other.interval.as_secs(), 60);
    let settings = other.settings(4).expect("it is on");
    assert!(settings.shadow && settings.mode == PlannerMode::Scoreboard && settings.gates == 4);
}

#[test]
fn the_policy_in_force_may_be_off_or_in_shadow_and_stays_as_written() {
    let off = config("flash_crowd.mode = 'off'\nflash_crowd.candidate.mode = 'repaired'\n");
    assert_eq!(off.flash_crowd.settings(1), None);
    assert!(off.flash_crowd_candidate.is_some_and(|candidate| candidate.settings(1).is_some()));
    let flags = Overrides { mode: Some("paper".to_owned()), shadow: true, ..Overrides::default() };
    let text = format!("{SMALLEST}flash_crowd.candidate.margin = 0.2\n");
    let config = Config::from_toml_with(&text, "shop.toml", &flags).expect("it is right");
    let other = config.flash_crowd_candidate.expect("a candidate");
    assert_eq!((other.mode, config.flash_crowd.mode), (FlashCrowdMode::Paper, FlashCrowdMode::Paper));
    assert_eq!((config.flash_crowd.margin, other.margin), (0.1, 0.2));
}

#[test]
fn what_is_wrong_names_line_and_key() {
    const IN_FORCE: &str = "flash_crowd.candidate: is the policy in force, expected another `mode`, `interval`, `margin` or `hot_spots`";
    const OFF: &str = "flash_crowd.candidate.mode: a candidate that is \"off\" refuses no request, expected \"repaired\", \
                       \"paper\" or \"scoreboard\"";
    const KNOWN: &str = "expected one of `mode`, `interval`, `margin`, `hot_spots`";
    for (text, expected) in [
        ("[flash_crowd.candidate]\n", format!("2: {IN_FORCE}")),
        ("[flash_crowd]\nmargin = 0.2\ncandidate.margin = 0.2\n", format!("4: {IN_FORCE}")),
        ("[flash_crowd]\nshadow = true\ncandidate.interval = '100ms'\n", format!("4: {IN_FORCE}")),
        ("[flash_crowd]\nmode = 'off'\n[flash_crowd.candidate]\nmargin = 0.2\n", format!("4: {OFF}")),
        ("[flash_crowd.candidate]\nmode = 'off'\n", format!("3: {OFF}")),
        (
            "[flash_crowd.candidate]\nmargin = 2\n",
            "3: flash_crowd.candidate.margin: 2 is out of range, expected 0.01 to 0.9".to_owned(),
        ),
        (
            "[flash_crowd.candidate]\ninterval = '1ms'\n",
            "3: flash_crowd.candidate.interval: 1ms is out of range, expected 10ms to 5m".to_owned(),
        ),
        (
            "[flash_crowd.candidate]\nshadow = true\n",
            format!("3: flash_crowd.candidate.shadow: unknown key `shadow`, {KNOWN}"),
        ),
        (
            "[flash_crowd.candidate.candidate]\nmargin = 0.2\n",
            format!("2: flash_crowd.candidate.candidate: unknown key `candidate`, {KNOWN}"),
        ),
    ] {
        let text = format!("{SMALLEST}{text}");
        let message = Config::from_toml(&text, "shop.toml").expect_err(&text).to_string();
        assert_eq!(message, format!("shop.toml:{expected}"), "for: {text}");
    }
}
