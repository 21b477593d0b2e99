//! TLS handshakes that begin and never end: cut after their time, and nothing of them is left.

use flashweir_testkit::{Authority, Client, Curl, Upstream, until};
use std::time::Duration;

use crate::faults::before;

/// Of each kind.
const HALVES: usize = 150;
/// The beginning of a ClientHello that announces 512 bytes: record head, handshake head, version.
const HELLO_BEGUN: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

#[test]
fn half_handshakes_end_in_time_and_leave_nothing() {
    const TEST: &str = "half_handshakes_end_in_time_and_leave_nothing";
    let Some(curl) = Curl::require(TEST) else { return };
    let upstream = Upstream::saying("served");
    let authority = Authority::new();
    let builder = before(&upstream);
    let ca = authority.write(builder.directory()).display().to_string();
    let _files = authority.issue(builder.directory(), "first");
    let gateway = builder
        .text("listen.tls.certificate", "server.pem")
        .text("listen.tls.key", "server.key")
        .text("bounds.tls_handshake_timeout", "2s")
        .start();
    let url = format!("https://localhost:{}/", gateway.address().port());
    let serves = || curl.get(&url, &["--cacert", &ca]).status == 200;
    assert!(serves());
    let files = gateway.process().open_files();
    // Silent ones, begun ones, and some that speak something else.
    let beginnings: [&[u8]; 3] = [b"", HELLO_BEGUN, b"\x16\x03\x01\xff\xff"];
    let mut halves = Vec::new();
    for index in 0..3 * HALVES {
        let mut client = Client::connect(gateway.address());
        let _ = client.try_send(beginnings[index % 3]);
        halves.push(client);
    }
    assert!(serves(), "an honest handshake beside {} half ones", halves.len());
    until("the end of half handshakes", Duration::from_secs(40), || {
        (gateway.metrics().value("flashweir_connections_open") == 0.0).then_some(())
    });
    for client in &mut halves {
        let _alert = client.read_to_end();
    }
    until("the files back", Duration::from_secs(20), || {
        (gateway.process().open_files() <= files + 4).then_some(())
    });
    assert!(serves());
}
