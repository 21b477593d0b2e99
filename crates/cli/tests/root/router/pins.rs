//! A gate that stands from one router to the next.

use std::sync::atomic::{AtomicBool, Ordering};

use flashweir_kernel::gate::PinDirectory;
use flashweir_testkit::{Signal, eventually};
use tempfile::TempDir;

use crate::kernel::bpf_files::{BpfFiles, leave_gate};
use crate::router::scene::{CLIENTS, Scene};

/// Goal: every client meets the ceiling that was in force, from one router to the next, whether that was
/// stopped or killed; by configuration, a router leaves nothing. Method: another process leaves a gate that
/// admits no connection, before a server that answers every client.
#[test]
fn a_pinned_gate_stands_from_one_router_to_the_next() {
    let test = "a pinned gate and routers";
    let Some(scene) = Scene::require(test, 100) else { return };
    let Some(files) = BpfFiles::require(test) else { return };
    let servers = [8080, 8081].map(|port| scene.server(port));
    scene.as_router(|| leave_gate(&files.pins(), CLIENTS, CLIENTS, &servers));
    let pinned = format!("pin = '{}'\nfail_closed = true", files.pins_text());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut refused = 0;
            while !over.load(Ordering::Relaxed) {
                assert_eq!(scene.get(8080).status(), 503);
                refused += 1;
            }
            refused
        });
        let stops = || {
            for end in [Signal::Terminate, Signal::Kill] {
                let router = scene.start(&pinned);
                let status = scene.status();
                assert_eq!(status["places"][0]["ceiling_per_s"], 0.0, "{status}");
                let finished = router.end(end);
                assert!(finished.stderr.contains("is taken over"), "{}", finished.stderr);
                assert!(scene.is_guarded());
            }
            let router = scene.start(&pinned);
            // Two at once would tell one gate different things.
            let second = scene.start_in_vain(&format!("{pinned}\n[admin]\naddress = '127.0.0.1:9901'"));
            assert_eq!((second.code(), second.stderr.lines().count()), (Some(64), 1), "{}", second.stderr);
            assert!(second.stderr.contains("another process guards by the pins"), "{}", second.stderr);
            router
        };
        let router = std::panic::catch_unwind(std::panic::AssertUnwindSafe(stops));
        over.store(true, Ordering::Relaxed);
        let refused = client.join().expect("no client was admitted");
        let router = router.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(refused >= 10, "{refused}");
        let count = |what: &str| scene.status()["connections"][what].as_u64();
        eventually("the counters", || (count("offered") == Some(refused)).then_some(()));
        assert_eq!((count("refused"), count("admitted")), (Some(refused), Some(0)));
        let finished = router.end(Signal::Interrupt);
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    });
    assert!(!scene.is_guarded() && !files.pins().join(CLIENTS).exists());
    assert_eq!(scene.get(8080).status(), 200);
}

#[test]
fn pins_that_cannot_be_are_told_in_one_line_and_nothing_changes() {
    let test = "pins that a router cannot use";
    let Some(scene) = Scene::require(test, 100) else { return };
    let Some(files) = BpfFiles::require(test) else { return };
    let check = |pins: &str, wanted: &str| {
        let finished = scene.start_in_vain(&format!("pin = '{pins}'"));
        assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
        assert!(!scene.is_guarded());
    };
    let ordinary = TempDir::new().expect("a fresh directory");
    let pins = ordinary.path().join("pins").display().to_string();
    check(&pins, "is no directory of a BPF file system");
    assert!(!ordinary.path().join("pins").exists(), "it made one where no pin can be");
    check(&ordinary.path().display().to_string(), "is no directory of a BPF file system");

    // Another process's gate before another interface, pinned under this one's name: it stays.
    scene.as_router(|| leave_gate(&files.pins(), "lo", CLIENTS, &[scene.server(8080)]));
    check(&files.pins_text(), "stands before another interface");
    assert!(files.pins().join(CLIENTS).exists());
    assert!(scene.ip(&["link", "show", "lo"]).contains("prog/xdp"));
    let _others = PinDirectory::open(&files.pins()).expect("a router that failed has let go of it");
    check(&files.pins_text(), "another process guards by the pins");
}
