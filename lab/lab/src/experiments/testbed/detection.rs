//! Detection delay of a crowd, in intervals of T.

use super::record::Record;
use super::scene::{REPAIRED, Scene};

/// Between two looks at the router.
pub(super) const SEEN_LATE_S: f64 = 0.5;
/// The repaired planner takes one bad interval for evidence where T is at least this, and otherwise three of
/// four.
const ONE_IS_EVIDENCE_FROM_S: u64 = 5;

/// Meaning of protection within an interval here.
pub(super) const PROTECTED: &str = "Protected within one interval: from the crowd's start to the first limit in force no more time passes \
    than T, and half a second, as decisions are looked up every half second. The crowd grows for some time before it is too \
    large, so an early ceiling is no merit by itself.";

/// From the crowd's start to the first limit in force, in intervals.
pub(super) fn found_after_intervals(scene: &Scene, interval_s: u64) -> impl Fn(&Record) -> Option<f64> {
    let onset_s = scene.onset_s();
    move |record| Some(record.found_after_s(onset_s)? / interval_s as f64)
}

/// The most intervals that "within one" may seem to take.
pub(super) fn within_one(interval_s: u64) -> f64 {
    1.0 + SEEN_LATE_S / interval_s as f64
}

/// Remark of a row about detection on this T.
pub(super) fn waits_for(interval_s: u64) -> &'static str {
    if interval_s < ONE_IS_EVIDENCE_FROM_S { " (repaired waits for three bad ones of four)" } else { "" }
}

/// Remark of a condition on one mode about this T.
pub(super) fn it_waits_for(mode: &str, interval_s: u64) -> &'static str {
    let waits = mode == REPAIRED && interval_s < ONE_IS_EVIDENCE_FROM_S;
    if waits { " (it waits for three bad ones of four)" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::super::{Decision, Scope};
    use super::*;

    #[test]
    fn intervals_are_counted_from_the_onset_and_who_waits_is_told() {
        let scene = Scene::network_limited(&Scope { quiet_s: 10, ..Scope::default() });
        let decisions = vec![Decision { at_s: 14.5, limit_per_s: Some(5.0) }];
        let record = Record { decisions, ..Record::default() };
        let found = found_after_intervals(&scene, 4)(&record).expect("found");
        assert!(found <= within_one(4) && found > 1.0, "{found}");
        assert_eq!(found_after_intervals(&scene, 4)(&Record::default()), None);
        assert_eq!([waits_for(5), it_waits_for("scoreboard", 1), it_waits_for(REPAIRED, 5)], [""; 3]);
        assert!(waits_for(4).contains("three") && it_waits_for(REPAIRED, 4).contains("three"));
    }
}
