//! A kernel feature that is missing is reported in one line, with exit code 64, before a port opens.

use flashweir_kernel::gate::{Hook, KernelGate, PinDirectory};
use flashweir_testkit::{GatewayBuilder, PATIENCE, Process, require_program, skip};
use std::net::TcpListener;
use std::path::Path;

use crate::kernel::bpf_files::{BpfFiles, leave_gate};
use crate::kernel::crowd::{ask, is_refused_by_kernel};
use crate::kernel::scene::{CLIENTS, as_server, binary, builder, is_guarded, may_load, require_testbed};

const ORIGIN: &str = "http://127.0.0.1:9";

fn assert_refused(builder: GatewayBuilder, wanted: &str) {
    let admin = builder.admin();
    let finished = builder.start_in_vain();
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
    assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    TcpListener::bind(admin).expect("no port is held");
}

#[test]
fn an_interface_that_is_not_there_and_one_that_is_taken() {
    let test = "interfaces that a gateway cannot guard";
    let Some((testbed, address)) = require_testbed(test) else { return };
    let other = match KernelGate::load() {
        Ok(gate) => gate,
        Err(error) if error.is_unavailable() => return skip(test, &error.to_string()),
        Err(error) => panic!("{error}"),
    };
    as_server(&testbed, || {
        assert_refused(
            builder(address, ORIGIN).text("kernel.interface", "eth7"),
            "cannot refuse connections in the kernel: there is no interface `eth7` in this network namespace",
        );
        let _foreign = other.attach("clients", Hook::Generic).expect("an interface without a program");
        assert_refused(builder(address, ORIGIN), "`clients` already runs an XDP program");
        assert_refused(
            builder(address, ORIGIN).text("kernel.interface", "lo").text("kernel.hook", "native"),
            "try the generic hook",
        );
    });
}

#[test]
fn too_few_rights() {
    let test = "a gateway without rights in the kernel";
    let (Some(_), Some(program)) = (require_testbed(test), require_program("setpriv", test)) else { return };
    let flashweir = env!("CARGO_BIN_EXE_flashweir");
    let nothing = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", flashweir];
    let run = ["run", "--upstream", ORIGIN, "--listen", "127.0.0.1:0", "--kernel", "--interface", "lo"];
    let finished = Process::run(&program, Path::new("/"), PATIENCE, nothing.into_iter().chain(run));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(64), 1), "{}", finished.stderr);
    assert!(finished.stderr.contains("need root, or the capabilities CAP_BPF"), "{}", finished.stderr);
}

#[test]
fn the_kernel_without_an_interface() {
    let finished = binary().run(["run", "--upstream", ORIGIN, "--kernel"]);
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(finished.stderr.contains("--interface NAME"), "{}", finished.stderr);
}

#[test]
fn pins_that_cannot_be_and_the_gate_that_was_there_stays_when_the_port_is_taken() {
    let test = "pins that a gateway cannot use";
    let Some((testbed, address)) = require_testbed(test) else { return };
    if !may_load(test) {
        return;
    }
    let Some(files) = BpfFiles::require(test) else { return };
    let with_pins = |pins: &str| builder(address, ORIGIN).text("kernel.pin", pins);
    as_server(&testbed, || {
        assert_refused(with_pins("/tmp"), "`/tmp` is no directory of a BPF file system");
        let others = PinDirectory::open(&files.pins()).expect("a BPF file system");
        assert_refused(with_pins(&files.pins_text()), "another process guards by the pins");
        drop(others);
        // What the start had put there goes again, what it had found stays.
        let _port = TcpListener::bind(address).expect("a free port");
        assert_refused(with_pins(&files.pins_text()), "in use");
        assert!(!is_guarded(&testbed));
        leave_gate(&files.pins(), CLIENTS, CLIENTS, &[address]);
        assert_refused(with_pins(&files.pins_text()), "in use");
        assert!(is_guarded(&testbed));
    });
    assert!(is_refused_by_kernel(&testbed.inside(CLIENTS, || ask(address))));
}
