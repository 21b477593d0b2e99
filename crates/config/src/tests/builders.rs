//! Policies that planners get from a configuration: the one place where written words become a policy.

use core::time::Duration;

use crate::{Config, flash_crowd_planner};
use flashweir_admission::flash_crowd::{Baseline, PlannerMode, Settings};
use flashweir_admission::sentry::{self, ClassPolicy};
use flashweir_core::Rate;

fn config(text: &str) -> Config {
    let text = format!("upstream.urls = ['http://10.0.0.5:3000']\n{text}");
    Config::from_toml(&text, "shop.toml").unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn each_mode_is_told_to_the_detector() {
    let modes = [
        ("off", None),
        ("paper", Some((PlannerMode::Paper, 60_000))),
        ("scoreboard", Some((PlannerMode::Scoreboard, 60_000))),
        ("repaired", Some((PlannerMode::Repaired, 100))),
    ];
    for (mode, wanted) in modes {
        let text = format!("[flash_crowd]\nmode = '{mode}'\nmargin = 0.3\nhot_spots = false\n");
        let configured = config(&text).flash_crowd;
        let expected = wanted.map(|(mode, interval)| Settings {
            mode,
            interval: Duration::from_millis(interval),
            margin: 0.3,
            gates: 4,
            hot_spots: false,
            shadow: false,
        });
        assert_eq!(configured.settings(4), expected, "{mode}");
        let planner = flash_crowd_planner(&configured, 4, &Baseline::default());
        assert_eq!(planner.is_some(), wanted.is_some(), "{mode}");
    }
}

#[test]
fn a_sentry_and_its_classes_are_told_as_written() {
    let policings = [("off", None), ("reservation", Some(sentry::Policing::Reservation))];
    for (policing, wanted) in policings {
        let text = format!(
            "[sentry]\npolicing = '{policing}'\n[[sentry.ladder]]\nbelow = 50\nresponse_target = '1s'\n\
             [[sentry.ladder]]\nresponse_target = '3s'\n[[class]]\nname = 'gold'\nrevenue = 5\nguaranteed_rate = 20\n\
             queue = 7\nresponse_target = '2s'\nmatch.path = '/gold'\n"
        );
        let service = config(&text).services.swap_remove(0);
        let policy = service.sentry.policy(&service.classes);
        assert_eq!(policy.as_ref().map(|policy| policy.policing), wanted, "{policing}");
        let Some(policy) = policy else { continue };
        let gold = ClassPolicy {
            revenue: 5.0,
            guaranteed_rate: Rate::from_per_second(20.0),
            target: Some(Duration::from_secs(2)),
            queue: Some(7),
        };
        assert_eq!(policy.classes, [gold, ClassPolicy::default()]);
        let ladder: Vec<_> =
            policy.ladder.iter().map(|step| (step.below_rps, step.target.as_secs())).collect();
        assert_eq!(ladder, [(50.0, 1), (f64::INFINITY, 3)]);
    }
}
