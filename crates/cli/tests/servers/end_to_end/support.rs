//! Helpers of every theme.

use std::sync::atomic::{AtomicBool, Ordering};

use flashweir_testkit::{Connection, Flashweir, Gateway, GatewayBuilder, Latch, Upstream};

/// The program under test.
pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// A gateway in front of one server.
pub(crate) fn before(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&binary()).upstream(&upstream.url())
}

/// A server that reflects, and a gateway as it is out of the box.
pub(crate) fn reflecting() -> (Upstream, Gateway) {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    (upstream, gateway)
}

/// A server that takes requests in and answers none of them until the latch opens.
pub(crate) fn holding(latch: &Latch) -> Upstream {
    let latch = latch.clone();
    Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            latch.wait();
            if !connection.answer(200, "", "held") {
                return;
            }
        }
    })
}

/// A GET that keeps the connection.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
}

/// A GET with one more field line.
pub(crate) fn get_with(target: &str, field: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{field}\r\n\r\n")
}

/// Ends clients that ask until a flag is set, when it is dropped: also when the test fails, which would wait
/// for them.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
