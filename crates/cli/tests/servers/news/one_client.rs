//! People beside one client that takes all it can get.
//!
//! Twin in virtual time of the tests under load: `sim`, `people_are_answered_beside_one_greedy_client`.

use std::time::Duration;

use flashweir_testkit::{Load, until};

use crate::news::scene::{Scene, binary, count, count_between};

/// Of the people, while the client is there.
const ANSWERED_IN_TIME_MIN: f64 = 0.95;

#[test]
#[ignore = "real load: make test-load"]
fn people_are_answered_beside_one_client_that_asks_again_and_again_under_load() {
    let scene = Scene::with_the_sentry(&[]);
    let url = format!("http://{}/work", scene.gateway.address());
    let rate = scene.times_capacity(0.4);
    // People of a hundred networks, each once.
    let people = ["--rate", &rate, "--sources", "25000", "--duration", "17s", "--timeout", "1s"];
    let people = Load::start(&binary(), &url, &people);
    let offered = "flashweir_class_offered_total{service=\"default\",class=\"default\"}";
    let five_seconds = 5.0 * 0.4 * scene.capacity_rps;
    until("five seconds of people", Duration::from_secs(30), || {
        (scene.gateway.metrics().value(offered) >= five_seconds).then_some(())
    });
    // Twenty-four more connections a second that ask at once after each answer, and 50 ms after each refusal.
    let client = ["--rate", "24", "--duration", "9s", "--session", "endless", "--retry", "fixed:50ms"];
    let client = Load::start(&binary(), &url, &client).finish(Duration::from_secs(60));
    let people = people.finish(Duration::from_secs(60));

    let summary = format!("capacity {:.0}/s, {people}, beside {client}", scene.capacity_rps);
    assert_eq!(count_between(&people, "refused", 0..4), 0, "refused in calm: {summary}");
    assert!(count(&client, "refused") > 100, "the client was hardly refused: {summary}");
    let during = 6..13;
    let (good, offered) = (
        count_between(&people, "goodput", during.clone()) as f64,
        count_between(&people, "offered", during) as f64,
    );
    println!(
        "{} refused, {:.3} of the people in time, capacity {:.0}/s",
        count(&client, "refused"),
        good / offered,
        scene.capacity_rps
    );
    assert!(good >= ANSWERED_IN_TIME_MIN * offered, "{good} of {offered} people in time: {summary}");
}
