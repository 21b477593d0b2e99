//! Rotation of the log does not end the gateway.

use flashweir_testkit::{Signal, Upstream, eventually};

use crate::end_to_end::support::before;

/// xmrig/xmrig-proxy#370 and logrotate/logrotate#99: `kill -USR1` from a script that rotates logs ended the
/// server.
#[test]
fn signals_of_log_rotation_end_nothing() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    for signal in [Signal::Rotate, Signal::User2] {
        gateway.process().signal(signal);
    }
    eventually("a line for each signal", || {
        (gateway.stderr().matches("nothing to do: the log goes to standard error").count() == 2).then_some(())
    });
    assert_eq!(gateway.get("/").text(), "served");
    gateway.process().signal(Signal::Terminate);
    assert_eq!(gateway.finish().code(), Some(0));
}
