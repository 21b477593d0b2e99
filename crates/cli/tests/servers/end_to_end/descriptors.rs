//! However few files may be open, a flood of connections takes neither the service nor the admin listener.

use flashweir_testkit::{Client, Gateway, Upstream, eventually};

use crate::end_to_end::support::{before, get};

/// Idle connections, more than there may be open files.
const FLOOD: usize = 1_200;

fn flood(gateway: &Gateway) -> Vec<Client> {
    (0..FLOOD).filter_map(|_| Client::try_connect(gateway.address()).ok()).collect()
}

#[test]
fn a_low_soft_limit_is_raised() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("bounds.max_connections", "1500").open_files(256, 4_096).start();
    assert_eq!(gateway.metrics().value("flashweir_open_files_limit"), 4_096.0);
    assert_eq!(gateway.metrics().value("flashweir_connections_limit"), 1_500.0);
    assert!(!gateway.stderr().contains("open files"), "nothing to say where all fits: {}", gateway.stderr());
    let idle = flood(&gateway);
    gateway.wait_metric("flashweir_connections_open", FLOOD as f64);
    assert_eq!(gateway.get("/").status(), 200);
    drop(idle);
}

#[test]
fn at_a_low_hard_limit_everybody_is_answered() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).open_files(1_024, 1_024).start();
    for part in ["the limit on open files is 1024", "bounds.max_connections is 16384"] {
        eventually(part, || gateway.stderr().contains(part).then_some(()));
    }
    let mut inside = gateway.connect();
    assert_eq!(inside.ask(&get("/")).status(), 200);
    let idle = flood(&gateway);
    gateway.wait_metric("flashweir_connections_refused_total{bound=\"connections\"}", 1.0);
    assert_eq!(gateway.ask_admin("/healthz").status(), 200);
    assert_eq!(
        inside.ask(&get("/")).status(),
        200,
        "who is inside is served: the servers are still in reach"
    );
    assert_eq!(gateway.metrics().value("flashweir_connections_failed_total{kind=\"accept\"}"), 0.0);
    drop(idle);
    // Until then a new connection may be closed.
    eventually("room again", || {
        let mut client = Client::try_connect(gateway.address()).ok()?;
        client.try_send(get("/")).ok()?;
        (client.try_response().ok()?.status() == 200).then_some(())
    });
}
