//! A crowd at one host is that host's affair.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `a_crowd_at_one_host_leaves_the_others_their_usual_demand`.

use std::time::Duration;

use flashweir_testkit::Load;

use crate::news::scene::{Scene, binary, count, count_between};
use crate::news::watch::{Watch, story};

#[test]
#[ignore = "real load: make test-load"]
fn people_of_another_host_are_let_in_while_one_is_crowded_under_load() {
    let scene = Scene::new(&[]);
    let url = format!("http://{}/work", scene.gateway.address());
    let (few, crowd) = (scene.times_capacity(0.15), scene.times_capacity(3.0));
    let watch = Watch::start(scene.gateway.admin());
    let step = format!("{crowd}@6s");
    let common = ["--rate", &few, "--duration", "12s", "--sources", "1000", "--header"];
    let start = |more: &[&str]| Load::start(&binary(), &url, &[&common[..], more].concat());
    let crowded = start(&["Host: crowded.example", "--step", &step, "--seed", "1"]);
    let calm = start(&["Host: calm.example", "--seed", "2"]);
    let within = Duration::from_secs(45);
    let (crowded, calm) = (crowded.finish(within), calm.finish(within));
    let seen = watch.stop();
    let summary = || format!("capacity {:.0}/s\n{crowded}\n{calm}\n{}", scene.capacity_rps, story(&seen));

    assert!(seen.iter().any(|look| look.limit == "hot_spots"), "no hot-spot was limited: {}", summary());
    assert!(count(&crowded, "refused") > 0, "refused no request of the crowd: {}", summary());
    // From two seconds after the crowd came; by then it is known where it goes.
    let refused = count_between(&calm, "refused", 8..12);
    assert!(
        refused * 10 <= count_between(&calm, "offered", 8..12),
        "{refused} of the others were refused: {}",
        summary()
    );
}
