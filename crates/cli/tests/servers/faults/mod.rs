//! Injected faults around a gateway: crashes at every step of a write, full disks, clocks that jump,
//! servers that come and go, handshakes that never end. Through the real binary.

mod clocks;
mod crashes;
mod flapping;
mod full_disk;
mod half_handshakes;

use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Upstream};

fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

fn before(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&binary()).upstream(&upstream.url())
}

/// Enough requests for something to be learned from them.
fn some_traffic(gateway: &Gateway) {
    let mut client = gateway.connect();
    for _ in 0..50 {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 200);
    }
}
