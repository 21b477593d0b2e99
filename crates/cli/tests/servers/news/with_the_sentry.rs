//! The same crowd, with the sentry before the origin as it is by default.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `processors_idle_no_more_under_all_stages_than_under_the_sentry_alone`.

use std::time::Duration;

use flashweir_testkit::until;

use crate::news::scene::{Scene, count, count_between};

/// Least share of the origin's time that goes into answers in time. Holds beside ten other busy processes.
const USEFUL_MIN: f64 = 0.8;

#[test]
#[ignore = "real load: make test-load"]
fn a_crowd_is_held_to_what_the_origin_can_do_and_nobody_waits_in_vain_under_load() {
    let scene = Scene::with_the_sentry(&[]);
    let (result, _, useful) = scene.send_crowd(6);
    let summary = || format!("capacity {:.0}/s, {useful:?}, {result}", scene.capacity_rps);

    assert_eq!(count_between(&result, "refused", 0..5), 0, "refused before the crowd came: {}", summary());
    assert!(count_between(&result, "refused", 6..13) > 0, "refused no request of the crowd: {}", summary());
    // From the second second on.
    assert!(useful.useful() >= USEFUL_MIN, "useful {:.2}: {}", useful.useful(), summary());
    let (late, let_in) = (count(&result, "timed_out"), count(&result, "completed"));
    assert!(late * 20 <= let_in, "{late} were let in and not served: {}", summary());

    until("an empty queue", Duration::from_secs(10), || {
        let sentry = &scene.gateway.status()["services"][0]["sentry"];
        (sentry["waiting"] == 0 && sentry["in_flight"] == 0).then_some(())
    });
    let metrics = scene.gateway.metrics();
    let of_class = |name: &str| {
        metrics.value(&format!("flashweir_class_{name}_total{{service=\"default\",class=\"default\"}}"))
    };
    let (offered, admitted) = (of_class("offered"), of_class("admitted"));
    let unmet = of_class("unmet");
    assert_eq!(offered, admitted + unmet, "offered = admitted + shed + left, once the queue is empty");
    assert!(of_class("good") > 0.0 && of_class("good") <= of_class("completed"));
    assert!(metrics.value("flashweir_sentry_limit{service=\"default\"}") >= 1.0);
}
