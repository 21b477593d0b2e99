//! However a router ends, the network is as it was; and what happens to it meanwhile does not end it.

use flashweir_testkit::{Signal, eventually};

use crate::router::scene::Scene;

#[test]
fn a_killed_router_leaves_nothing_and_one_whose_interface_goes_guards_it_again() {
    let Some(scene) = Scene::require("the ends of a router", 100) else { return };
    let router = scene.start("");
    assert!(scene.is_guarded());
    assert_eq!(scene.get(8080).status(), 200);
    router.end(Signal::Kill);
    eventually("the gate's end", || (!scene.is_guarded()).then_some(()));

    // Nothing is left that would stand in the way of another one.
    let router = scene.start("");
    scene.reload(&router, "refusal = 'maybe'");
    eventually("a refused reload", || {
        router.stderr().contains("the configuration in force is kept").then_some(())
    });
    scene.reload(&router, "hook = 'native'");
    eventually("another", || {
        router.stderr().contains("kernel.hook cannot change while running").then_some(())
    });
    scene.reload(&router, "refusal = 'drop'\nshadow = true");
    eventually("a reload", || {
        let status = scene.status();
        (status["refusal"] == "drop" && status["shadow"] == true).then_some(())
    });
    assert!(scene.is_guarded());

    let is_guarded = || scene.status()["interfaces"][0]["guarded"].as_bool();
    scene.ip(&["link", "delete", "clients"]);
    eventually("the loss of the interface", || (is_guarded() == Some(false)).then_some(()));
    scene.ip(&["link", "add", "clients", "type", "veth", "peer", "name", "nobody"]);
    scene.ip(&["link", "set", "clients", "up"]);
    eventually("its return", || (is_guarded() == Some(true)).then_some(()));
    assert!(scene.is_guarded());
    eventually("a line about it", || router.stderr().contains("guarded again").then_some(()));
    let said = router.stderr();
    assert_eq!(said.matches("the interface is gone").count(), 1, "{said}");
    assert_eq!(said.matches("guarded again").count(), 1, "{said}");

    let finished = router.end(Signal::Interrupt);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(!scene.is_guarded());
}
