//! Ends of a gate: dropped, killed, or never begun.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{Hook, KernelGate};
use flashweir_testkit::{PATIENCE, Process, Signal, Testbed, eventually, require_program};

use crate::before_an_interface::bench::{has_program, load};

#[test]
fn the_gate_is_gone_when_dropped_and_when_its_process_is_killed() {
    let test = "the end of a kernel gate";
    let Some(gate) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, _] = testbed.link("client", "server");
    let attachment = testbed.inside("server", || gate.attach("client", Hook::Auto)).expect("an interface");
    assert_eq!(attachment.hook(), Hook::Generic);
    assert!(has_program(&testbed, "server", "client") && attachment.interface().is_some());
    drop(attachment);
    // A process that another test is starting holds a copy of the link until its exec.
    eventually("its end", || (!has_program(&testbed, "server", "client")).then_some(()));

    let this = std::env::current_exe().expect("this program");
    let namespace = testbed.full_name("server");
    let wait = ["--ignored", "--exact", "before_an_interface::ends::a_process_that_attaches_and_waits"];
    let arguments = ["netns", "exec", &namespace, this.to_str().expect("a path in UTF-8")];
    let all = arguments.into_iter().chain(wait);
    let mut process = Process::start(Path::new("ip"), Path::new("/"), all);
    eventually("the gate", || {
        assert!(process.ended().is_none(), "{}", process.stderr());
        has_program(&testbed, "server", "client").then_some(())
    });
    process.signal(Signal::Kill);
    eventually("its end", || (!has_program(&testbed, "server", "client")).then_some(()));
}

#[test]
fn a_gate_is_loaded_while_signals_come() {
    extern "C" fn handler(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler does nothing; no other test uses this signal.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    // SAFETY: `pthread_self` has no conditions.
    let this = unsafe { libc::pthread_self() };
    let (ended, end) = mpsc::channel::<()>();
    let gate = thread::scope(|scope| {
        scope.spawn(move || {
            // One each tenth of a millisecond; the check of the program takes some 30 ms.
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(Duration::from_micros(100)) {
                // SAFETY: the scope's thread lives until `ended` is dropped.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
            }
        });
        let gate = load("a kernel gate while signals come");
        drop(ended);
        gate
    });
    drop(gate);
}

#[test]
#[ignore = "no test: the process that the test before this kills"]
fn a_process_that_attaches_and_waits() {
    let gate = KernelGate::load().expect("root");
    let _attachment = gate.attach("client", Hook::Auto).expect("the namespace's interface");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_process_without_the_rights_is_told_which_it_needs() {
    let test = "a kernel gate without rights";
    let (Some(_), Some(program)) = (load(test), require_program("setpriv", test)) else { return };
    let this = std::env::current_exe().expect("this program");
    let nothing = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"];
    let run = [
        this.to_str().expect("a path in UTF-8"),
        "--ignored",
        "--exact",
        "before_an_interface::ends::loading_without_rights",
    ];
    let finished = Process::run(&program, Path::new("/"), PATIENCE, nothing.into_iter().chain(run));
    assert_eq!(finished.code(), Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("1 passed"), "{}", finished.stdout);
    assert!(!finished.stderr.contains("libbpf"), "{}", finished.stderr);
}

#[test]
#[ignore = "no test: what the test before this runs without rights"]
fn loading_without_rights() {
    let error = KernelGate::load().expect_err("no rights");
    assert!(matches!(error, LoadError::NotPermitted), "{error}");
    assert!(error.to_string().contains("CAP_BPF"), "{error}");
}
