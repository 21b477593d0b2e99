//! A link that cannot be divided is reported in one line, before anything is attached; other packets than
//! those of flows pass.

use std::path::Path;

use flashweir_testkit::{PATIENCE, Process, eventually, require_program};

use crate::links::scene::{RECEIVERS, ROUTER, SENDERS, Scene, Source};

#[test]
fn links_that_cannot_be_divided() {
    let test = "links that cannot be divided";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let check = |arguments: &[&str], wanted: &str| {
        let finished = scene.launch(arguments).finish(PATIENCE);
        assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    };
    check(
        &["--link", "eth7", "--link-rate", "10mbit"],
        "there is no interface `eth7` in this network namespace",
    );
    check(&["--link", RECEIVERS], "--link-rate RATE");
    check(&["--link", RECEIVERS, "--link-rate", "fast"], "`fast` is not a rate");
    check(
        &["--link", RECEIVERS, "--link-rate", "1kbit"],
        "1kbit is out of range, expected 64kbit to 400gbit",
    );
    check(&["--link", RECEIVERS, "--link-rate", "10mbit", "--link-side", "left"], "`left`");
    check(&["--link-rate", "10mbit"], "--link NAME");
    let tunnel = scene.in_router("ip", &["tuntap", "add", "bare", "mode", "tun"]);
    if tunnel.status.success() {
        assert!(scene.in_router("ip", &["link", "set", "bare", "up"]).status.success());
        check(&["--link", "bare", "--link-rate", "10mbit"], "`bare` is no Ethernet interface");
    } else {
        flashweir_testkit::skip("a link that is a tunnel", "no tunnel can be made");
    }
    assert!(scene.in_router("ip", &["link", "set", RECEIVERS, "down"]).status.success());
    check(&["--link", RECEIVERS, "--link-rate", "10mbit"], "interface `receivers` is down");
}

#[test]
fn too_few_rights() {
    let test = "a link without rights";
    let Some(program) = require_program("setpriv", test) else { return };
    let flashweir = env!("CARGO_BIN_EXE_flashweir");
    let nothing = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", flashweir];
    let run = ["router", "--link", "lo", "--link-rate", "10mbit", "--admin", "127.0.0.1:0"];
    let finished = Process::run(&program, Path::new("/"), PATIENCE, nothing.into_iter().chain(run));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
    assert!(finished.stderr.contains("need root, or the capabilities CAP_BPF"), "{}", finished.stderr);
}

/// Goal: a link and a crowd are guarded by one process, and shadow drops nothing. Method: both at one
/// interface; a flood over the said rate passes, and the status names it.
#[test]
fn one_router_guards_an_interface_and_shadows_its_link() {
    let test = "a router with a gate and a link";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let guard = ["--interface", RECEIVERS, "--protect", "0.0.0.0:80", "--shadow"];
    let Some(_router) = scene.divide(test, &guard) else { return };
    let _flows = [Source::Udp(2_000_000), Source::Udp(9_000_000)].map(|source| scene.start(source));
    eventually("the flood in the status", || (scene.link()["cut_flows"].as_u64() >= Some(1)).then_some(()));
    let status = scene.ask("/status").expect("a status").json();
    assert_eq!((&status["link"]["packets"]["purged"], &status["link"]["shadow"]), (&0.into(), &true.into()));
    assert_eq!(status["interfaces"][0]["guarded"], true);
    // The observer's first interval may still be under way.
    let queue = || scene.ask("/status")?.json()["queue"]["packets"].as_u64();
    eventually("the observer's reading of the queue", queue);
}

/// Goal: at ingress a link is policed whose queue is elsewhere. Method: a flood that comes in by the senders'
/// interface, and a rate below it.
#[test]
fn at_ingress_the_price_keeps_a_flood_to_the_rate() {
    let test = "a link at ingress";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let flow = scene.start(Source::Udp(8_000_000));
    let arguments = ["--link", SENDERS, "--link-side", "ingress", "--link-rate", "2mbit"];
    let Some(_router) = scene.divide(test, &arguments) else { return };
    let rate = || {
        let (settle, measure) = (std::time::Duration::ZERO, std::time::Duration::from_millis(500));
        crate::links::scene::Shares::measure(std::slice::from_ref(&flow), settle, measure).goodput[0]
    };
    eventually("a flood at the rate", || (1e6..2.6e6).contains(&rate()).then_some(()));
    assert!(scene.testbed.queue(ROUTER, RECEIVERS).waiting < 100);
}
