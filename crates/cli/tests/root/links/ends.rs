//! However a router ends, the link is as it was; and an interface that goes does not end it.

use std::path::Path;
use std::time::Duration;

use flashweir_testkit::{PATIENCE, Process, Signal, eventually};

use crate::links::scene::{Flow, RECEIVERS, ROUTER, Scene, Shares, Source};

/// Rate that a flow receives at the moment, bits a second.
fn rate(flow: &Flow) -> f64 {
    Shares::measure(std::slice::from_ref(flow), Duration::ZERO, Duration::from_millis(500)).goodput[0]
}

/// Goal: the program goes with its process, however that ends. Method: a flood of 4 Mb/s passes a link that
/// is said to carry 1 Mb/s only while no router divides it.
#[test]
fn killed_or_stopped_a_router_leaves_the_link_as_it_was() {
    let test = "the ends of a router of a link";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let flow = scene.start(Source::Udp(4_000_000));
    eventually("the flood", || (rate(&flow) > 3e6).then_some(()));
    for signal in [Signal::Terminate, Signal::Interrupt, Signal::Kill] {
        let Some(router) = scene.divide(test, &["--link-rate", "1mbit"]) else { return };
        eventually("a flood cut down", || (rate(&flow) < 2e6).then_some(()));
        router.signal(signal);
        let finished = router.finish(PATIENCE);
        let expected = (signal != Signal::Kill).then_some(0);
        assert_eq!(finished.code(), expected, "{}", finished.stderr);
        eventually("the flood again", || (rate(&flow) > 3e6).then_some(()));
    }
}

#[test]
fn a_router_that_hangs_lets_everything_pass() {
    let test = "a router of a link that hangs";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let flow = scene.start(Source::Udp(4_000_000));
    let Some(router) = scene.divide(test, &["--link-rate", "1mbit"]) else { return };
    eventually("a flood cut down", || (rate(&flow) < 2e6).then_some(()));
    router.signal(Signal::Pause);
    eventually("the flood", || (rate(&flow) > 3e6).then_some(()));
    router.signal(Signal::Resume);
    eventually("a flood cut down again", || (rate(&flow) < 2e6).then_some(()));
}

#[test]
fn an_interface_that_goes_is_divided_again_once_it_is_back() {
    let test = "a link whose interface goes";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let Some(router) = scene.divide(test, &[]) else { return };
    let name = scene.testbed.full_name(ROUTER);
    let ip = |arguments: &[&str]| {
        let all = ["-n", &name].into_iter().chain(arguments.iter().copied());
        let finished = Process::run(Path::new("ip"), Path::new("/"), PATIENCE, all);
        assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
    };
    ip(&["link", "delete", RECEIVERS]);
    eventually("the loss of the interface", || (scene.link()["attached"] == false).then_some(()));
    ip(&["link", "add", RECEIVERS, "type", "veth", "peer", "name", "other"]);
    ip(&["link", "set", RECEIVERS, "up"]);
    eventually("its return", || (scene.link()["attached"] == true).then_some(()));
    // The line comes right after the status.
    eventually("a line about it", || router.stderr().contains("divided again").then_some(()));
    let said = router.stderr();
    assert_eq!(said.matches("the link's interface is gone").count(), 1, "{said}");
    assert_eq!(said.matches("divided again").count(), 1, "{said}");
}
