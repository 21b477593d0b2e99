//! A gate that stands from one gateway to the next.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flashweir_testkit::{Gateway, Origin, Signal, Testbed, eventually};

use crate::kernel::bpf_files::{BpfFiles, leave_gate};
use crate::kernel::crowd::{ask, is_refused_by_kernel};
use crate::kernel::scene::{
    CLIENTS, SERVER, as_server, binary, builder, ip, is_guarded, may_load, require_testbed,
};

/// Goal: every client meets the ceiling that was in force, from one gateway to the next, whether that was
/// stopped or killed; an interface that comes back is guarded and pinned again; by configuration, a gateway
/// leaves nothing. Method: another process leaves a gate that admits no connection. A client asks all the
/// while, and must be refused by the kernel: without the gate, or past its plan, the gateway would answer, or
/// no process.
#[test]
fn a_pinned_gate_stands_from_one_gateway_to_the_next() {
    let test = "a pinned gate and gateways";
    let Some((testbed, address)) = require_testbed(test) else { return };
    if !may_load(test) {
        return;
    }
    let Some(files) = BpfFiles::require(test) else { return };
    let origin = as_server(&testbed, || {
        leave_gate(&files.pins(), CLIENTS, CLIENTS, &[address]);
        Origin::start(&binary(), 1.0)
    });
    let start = || {
        let builder = builder(address, &origin.url()).text("kernel.pin", &files.pins_text());
        as_server(&testbed, || builder.set("kernel.fail_closed", "true").start())
    };
    let (over, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let gateway = std::thread::scope(|scope| {
        let _end = AtLast(&over);
        let client = scope.spawn(|| {
            testbed.inside(CLIENTS, || {
                while !over.load(Ordering::Relaxed) {
                    let response = ask(address);
                    assert!(is_refused_by_kernel(&response), "{response}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let is_asked = || {
            let least = refused.load(Ordering::Relaxed) + 10;
            eventually("refusals", || {
                assert!(!client.is_finished(), "a client was admitted, or met no gate");
                (refused.load(Ordering::Relaxed) >= least).then_some(())
            });
        };
        is_asked();
        for (end, code) in [(Signal::Terminate, Some(0)), (Signal::Kill, None)] {
            let gateway = start();
            is_asked();
            gateway.process().signal(end);
            let finished = gateway.finish();
            assert_eq!(finished.code(), code, "{}", finished.stderr);
            assert!(finished.stderr.contains("is taken over"), "{}", finished.stderr);
            is_asked();
        }
        let gateway = start();
        is_asked();
        gateway
    });
    // All of them, for every gateway behind the gate.
    let count = |what: &str| as_server(&testbed, || gateway.status())["kernel"]["connections"][what].as_u64();
    let refused = Some(refused.into_inner());
    eventually("the counters", || (count("offered") == refused).then_some(()));
    assert_eq!((count("answered"), count("admitted")), (refused, Some(0)));

    let pin = files.pins().join(CLIENTS);
    check_a_return(&testbed, &gateway, &pin);
    gateway.process().signal(Signal::Interrupt);
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr.matches("guarded again").count(), 1, "{}", finished.stderr);
    assert!(!is_guarded(&testbed) && !pin.exists());
}

/// The interface goes and comes back, and is guarded and pinned again.
fn check_a_return(testbed: &Testbed, gateway: &Gateway, pin: &Path) {
    let reported_guarded =
        || as_server(testbed, || gateway.status())["kernel"]["interfaces"][0]["is_guarded"].as_bool();
    assert_eq!(reported_guarded(), Some(true));
    ip(testbed, SERVER, &["link", "delete", CLIENTS]);
    eventually("the loss of the interface", || (reported_guarded() == Some(false)).then_some(()));
    assert!(!pin.exists(), "a pin of what is gone");
    ip(testbed, SERVER, &["link", "add", CLIENTS, "type", "veth", "peer", "name", "nobody"]);
    eventually("its return", || (reported_guarded() == Some(true)).then_some(()));
    assert!(is_guarded(testbed) && pin.exists());
    let warnings = "flashweir_warnings_total{event=\"kernel\"}";
    assert!(as_server(testbed, || gateway.metrics()).value(warnings) >= 1.0);
}

/// Says when it is dropped that something is over, also when a test fails.
struct AtLast<'a>(&'a AtomicBool);

impl Drop for AtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
