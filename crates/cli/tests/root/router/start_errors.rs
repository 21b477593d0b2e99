//! A missing requirement is reported in one line, before anything is attached.

use std::path::Path;

use flashweir_kernel::gate::{Hook, KernelGate};
use flashweir_testkit::{PATIENCE, Process, require_program};

use crate::router::scene::{Scene, binary, may_load};

#[test]
fn interfaces_that_cannot_be_guarded_and_servers_that_are_not_named() {
    let Some(scene) = Scene::require("what a router cannot guard", 100) else { return };
    let check = |more: &str, wanted: &str| {
        let finished = scene.start_in_vain(more);
        assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
        assert!(!scene.is_guarded() || more.is_empty());
    };
    check("interface = 'eth7'", "there is no interface `eth7` in this network namespace");
    check("interface = ['clients', 'eth7']", "there is no interface `eth7`");
    check("protect = []", "kernel.protect: no server");
    scene.ip(&["link", "set", "servers", "down"]);
    check("interface = ['clients', 'servers']", "interface `servers` is down");
    let other = KernelGate::load().expect("the scene could");
    let _foreign = scene.as_router(|| other.attach("clients", Hook::Generic)).expect("no program yet");
    check("", "`clients` already runs an XDP program");
}

#[test]
fn too_few_rights() {
    let test = "a router without rights";
    let (Some(_), Some(program)) = (may_load(test), require_program("setpriv", test)) else {
        return;
    };
    let flashweir = env!("CARGO_BIN_EXE_flashweir");
    let nothing = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", flashweir];
    let run = ["router", "--interface", "lo", "--protect", "127.0.0.1:9", "--admin", "127.0.0.1:0"];
    let finished = Process::run(&program, Path::new("/"), PATIENCE, nothing.into_iter().chain(run));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
    assert!(finished.stderr.contains("need root, or the capabilities CAP_BPF"), "{}", finished.stderr);
}

#[test]
fn no_interface() {
    let finished = binary().run(["router", "--protect", "192.0.2.1:80"]);
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(finished.stderr.contains("--interface NAME"), "{}", finished.stderr);
}
