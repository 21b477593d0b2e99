//! Effect of the gate on a crowd of new connections, and on traffic that it must leave alone.
//!
//! Twin in virtual time of the tests under load: `kernel`, `the_gate_in_c_is_the_gate_in_rust`.

use flashweir_testkit::{Client, Gateway, Signal, eventually};

use crate::kernel::crowd::{ask, is_refused_by_kernel, pause, send_crowd};
use crate::kernel::scene::Scene;

const REQUEST: &str = "GET /work HTTP/1.1\r\nHost: a\r\n\r\n";

/// Goal: the kernel answers the excess, the gateway serves the rest, everything adds up, who is connected
/// stays so, and nothing is left behind by a process that is killed.
#[test]
#[ignore = "real load: make test-load"]
fn the_kernel_answers_the_excess_and_the_gateway_serves_the_rest_under_load() {
    let Some(scene) = Scene::require("a crowd before the kernel's gate", &[]) else { return };
    assert!(scene.is_guarded());
    let mut connected = scene.as_client(|| Client::connect(scene.address));
    assert_eq!(connected.ask(REQUEST).status(), 200);
    let met = send_crowd(&scene, || {
        eventually("hundreds refused by the kernel, some by the gateway, and some served", || {
            let status = scene.asking(Gateway::status);
            let [answered, shed, completed] = [
                &status["kernel"]["connections"]["answered"],
                &status["requests"]["shed"],
                &status["requests"]["completed"],
            ]
            .map(|count| count.as_u64().unwrap_or(0));
            (answered >= 500 && shed > 0 && completed >= 25).then_some(())
        });
        assert!(
            [200, 503].contains(&connected.ask(REQUEST).status()),
            "its connection is not the kernel's business"
        );
        eventually("a ceiling below what comes", || {
            let kernel = &scene.asking(Gateway::status)["kernel"];
            assert_eq!(kernel["headroom"], 2.0);
            let ceiling = kernel["ceiling_connections_per_s"].as_f64()?;
            (ceiling < kernel["arriving_connections_per_s"].as_f64()?).then_some(())
        });
    });
    assert!(met.served >= 20 && met.refused_by_gateway > 0, "{met:?}");
    assert!(met.for_capacity > 0, "the sentry refused, and the kernel for its sake: {met:?}");

    eventually("an open gate", || {
        scene.asking(Gateway::status)["kernel"]["ceiling_connections_per_s"].is_null().then_some(())
    });
    assert_eq!(scene.connections("answered"), met.refused_by_kernel, "{met:?}");
    // The one that was connected before is the gateway's, too.
    let let_in = met.served + met.refused_by_gateway + 1;
    assert_eq!(
        (scene.connections("offered"), scene.connections("admitted")),
        (met.all() + 1, let_in),
        "{met:?}"
    );
    let metrics = scene.asking(Gateway::metrics);
    let of_kernel =
        |name: &str| metrics.value(&format!("flashweir_kernel_{name}_total{{service=\"default\"}}"));
    assert_eq!(of_kernel("connections_offered"), (met.all() + 1) as f64);
    assert_eq!(metrics.value("flashweir_connections_opened_total"), let_in as f64);
    assert_eq!(connected.ask(REQUEST).status(), 200);

    scene.gateway.process().signal(Signal::Kill);
    eventually("nothing before the interface", || (!scene.is_guarded()).then_some(()));
}

/// Goal: in shadow everything is counted and nothing refused; a reload that ends the shadow and prefers the
/// clients' network is taken over; the gate is gone at a stop.
#[test]
#[ignore = "real load: make test-load"]
fn in_shadow_nobody_is_refused_and_preferred_networks_never_are_under_load() {
    let Some(mut scene) = Scene::require("the kernel's gate in shadow", &[("kernel.shadow", "true")]) else {
        return;
    };
    let met = send_crowd(&scene, || {
        eventually("refusals in shadow", || (scene.connections("shadowed") >= 100).then_some(()));
    });
    assert_eq!((met.refused_by_kernel, scene.connections("answered")), (0, 0), "{met:?}");

    let preferred = format!("[\"{}\"]", scene.clients_network());
    scene.gateway.configure(&[("kernel.shadow", None), ("kernel.preferred", Some(&preferred))]);
    scene.gateway.reload();
    eventually("the reload", || {
        let reloads = "flashweir_config_reloads_total{outcome=\"ok\"}";
        (scene.asking(Gateway::metrics).value(reloads) >= 1.0).then_some(())
    });
    eventually("an open gate, out of the shadow", || {
        let kernel = &scene.asking(Gateway::status)["kernel"];
        (kernel["ceiling_connections_per_s"].is_null() && kernel["shadow"] == false).then_some(())
    });
    let shadowed = scene.connections("shadowed");
    let met = send_crowd(&scene, || {
        eventually("a ceiling", || {
            scene.asking(Gateway::status)["kernel"]["ceiling_connections_per_s"].is_number().then_some(())
        });
    });
    assert!(met.refused_by_gateway > 0, "{met:?}");
    assert_eq!((met.refused_by_kernel, scene.connections("shadowed")), (0, shadowed), "{met:?}");
    let preferred = "flashweir_kernel_connections_preferred_admitted_total{service=\"default\"}";
    // Metrics follow within a tenth of a second.
    scene.asking(|gateway| gateway.wait_metric(preferred, met.all() as f64));

    scene.gateway.terminate();
    eventually("nothing before the interface", || (!scene.is_guarded()).then_some(()));
    let finished = scene.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}

/// Goal: in the middle of a crowd of which the kernel refuses most, new connections of an important rank are
/// admitted by it. Method: the crowd goes to one port, the important client to another, at most ten times a
/// second: less than the ceiling on all.
#[test]
#[ignore = "real load: make test-load"]
fn the_kernel_refuses_the_important_rank_last_under_load() {
    const IMPORTANT: u64 = 30;
    let keys = [
        ("listen.address", "[\"0.0.0.0:8080\", \"0.0.0.0:8081\"]"),
        ("kernel.tier", "[{ rank = 0, ports = [8081] }]"),
    ];
    let Some(scene) = Scene::require("ranks before the kernel's gate", &keys) else { return };
    let mut important = scene.address;
    important.set_port(8081);
    let mut refused = 0;
    send_crowd(&scene, || {
        eventually("hundreds refused by the kernel", || (scene.connections("answered") >= 300).then_some(()));
        scene.as_client(|| {
            let is_refused = |_: &u64| {
                (0..5).for_each(|_| pause());
                is_refused_by_kernel(&ask(important))
            };
            refused = (0..IMPORTANT).filter(is_refused).count();
        });
    });
    // One may come when a ceiling begins with an empty bucket. Of the others nine of ten are refused, or
    // more.
    assert!(refused <= 2, "{refused} of {IMPORTANT}");
    let tiers = &scene.asking(Gateway::status)["kernel"]["tiers"];
    let count = |rank: usize, what: &str| tiers[rank][what].as_u64().expect("a count");
    // The status is up to a tenth of a second old.
    assert!((IMPORTANT - 2..2 * IMPORTANT).contains(&count(0, "offered")), "{tiers}");
    assert!(count(0, "refused") <= 2 && count(1, "refused") >= 300, "{tiers}");
}
