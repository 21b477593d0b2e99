//! Gates that outlive their process.

use std::ffi::{CString, OsString};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flashweir_kernel::gate::{AttachError, ExcessTreatment, Hook, KernelGate, PinError};
use flashweir_testkit::{Finished, PATIENCE, Process, Signal, Testbed, eventually, require_program};
use libbpf_rs::{MapCore as _, libbpf_sys};
use tempfile::TempDir;

use crate::before_an_interface::bench::{closed, connect, has_program, index_of, load, load_object, service};

/// A BPF file system of a test's own, unmounted when dropped.
struct BpfFiles {
    directory: TempDir,
}

impl BpfFiles {
    fn require(test: &str) -> Option<Self> {
        require_program("mount", test)?;
        let directory = TempDir::new().expect("a fresh directory");
        let mounted = run("mount", ["-t", "bpf", "bpf"].map(OsString::from), directory.path());
        assert_eq!(mounted.code(), Some(0), "{}", mounted.stderr);
        Some(Self { directory })
    }

    fn pin(&self) -> PathBuf {
        self.directory.path().join("gate")
    }
}

impl Drop for BpfFiles {
    fn drop(&mut self) {
        run("umount", [OsString::from("--lazy")], self.directory.path());
    }
}

fn run(program: &str, arguments: impl IntoIterator<Item = OsString>, directory: &Path) -> Finished {
    let arguments = arguments.into_iter().chain([directory.into()]);
    Process::run(Path::new(program), Path::new("/"), PATIENCE, arguments)
}

/// Goal: from the first process's death to the second's end of taking over no client is admitted that
/// should not be. Method: a client knocks all the while, and would be admitted by any packet that meets no
/// gate or an open one.
#[test]
fn a_pinned_gate_outlives_its_process_and_is_taken_over_without_a_gap() {
    let test = "a pinned kernel gate";
    let Some(passing) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let Some(files) = BpfFiles::require(test) else { return };
    let [_, server] = testbed.link("client", "server");
    let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
    listener.set_nonblocking(true).expect("a listener");
    let server = listener.local_addr().expect("an address");
    let _passing =
        testbed.inside("client", || passing.attach("server", Hook::Native)).expect("a free interface");
    let is_refused =
        || connect(&testbed, server).expect_err("refused").kind() == ErrorKind::ConnectionRefused;
    let has_gate = || has_program(&testbed, "server", "client");

    let mut process = start_pinning(&testbed, &files.pin(), server);
    eventually("a pinned gate", || {
        assert!(process.ended().is_none(), "{}", process.stderr());
        files.pin().exists().then_some(())
    });
    assert!(is_refused());
    process.signal(Signal::Kill);
    eventually("its end", || process.ended());
    assert!(has_gate() && is_refused());

    let over = AtomicBool::new(false);
    let knocks = AtomicU64::new(0);
    let (gate, attachment) = std::thread::scope(|scope| {
        let _end = AtLast(&over);
        let knocking = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert!(is_refused());
                knocks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let knocked = |times| {
            let least = knocks.load(Ordering::Relaxed) + times;
            eventually("knocks", || {
                assert!(!knocking.is_finished(), "a client was admitted");
                (knocks.load(Ordering::Relaxed) >= least).then_some(())
            });
        };
        knocked(20);
        let mut gate = KernelGate::load_pinned(&files.pin()).expect("root");
        assert!(gate.took_over());
        gate.set_services(vec![service(server)]).expect("the same service");
        knocked(20);
        let attach = || gate.attach_pinned("client", Hook::Auto, &files.pin());
        let attachment = testbed.inside("server", attach).expect("our own pin");
        assert_eq!(attachment.hook(), Hook::Generic);
        knocked(20);
        gate.apply(&[closed(ExcessTreatment::Reset)]).expect("a plan");
        knocked(20);
        (gate, attachment)
    });
    assert_eq!(listener.accept().expect_err("no client was admitted").kind(), ErrorKind::WouldBlock);
    let counts = gate.counters().expect("counters")[0];
    // Those of the first process, those that met no process, and those of the second.
    assert_eq!((counts.reset, counts.admitted), (2 + knocks.into_inner(), 0), "{counts:?}");

    attachment.hand_over();
    drop(gate);
    assert!(has_gate() && is_refused() && files.pin().exists());
    let gate = KernelGate::load_pinned(&files.pin()).expect("root");
    let attach = || gate.attach_pinned("client", Hook::Auto, &files.pin());
    drop(testbed.inside("server", attach).expect("our own pin"));
    assert!(!has_gate() && !files.pin().exists());
    connect(&testbed, server).expect("no gate");
}

/// A pinned link of another owner.
fn link_of(program: BorrowedFd<'_>, interface: u32, pin: &Path) -> OwnedFd {
    let pin = CString::new(pin.as_os_str().as_bytes()).expect("no zero in it");
    let (program, target) = (program.as_raw_fd(), interface.cast_signed());
    // SAFETY: the descriptor is open; no options are a choice.
    let link = unsafe { libbpf_sys::bpf_link_create(program, target, libbpf_sys::BPF_XDP, std::ptr::null()) };
    assert!(link >= 0, "{}", std::io::Error::from_raw_os_error(-link));
    // SAFETY: the descriptor is open, the pointer is to a string that ends in zero and outlives the call.
    let status = unsafe { libbpf_sys::bpf_obj_pin(link, pin.as_ptr()) };
    assert_eq!(status, 0, "{}", std::io::Error::from_raw_os_error(-status));
    // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
    unsafe { OwnedFd::from_raw_fd(link) }
}

/// Says when it is dropped that something is over, also when a test fails.
struct AtLast<'a>(&'a AtomicBool);

impl Drop for AtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The process that is killed, in the server's namespace.
fn start_pinning(testbed: &Testbed, pin: &Path, server: SocketAddr) -> Process {
    let this = std::env::current_exe().expect("this program");
    let namespace = testbed.full_name("server");
    let environment = [("PIN", pin.as_os_str().to_owned()), ("SERVER", server.to_string().into())];
    let environment =
        environment.map(|(name, value)| [OsString::from(name), "=".into(), value].into_iter().collect());
    let start = ["netns", "exec", &namespace, "env"].map(OsString::from);
    let wait = ["--ignored", "--exact", "before_an_interface::pins::a_process_that_pins_and_waits"]
        .map(OsString::from);
    let arguments = start.into_iter().chain::<[OsString; 2]>(environment).chain([this.into()]).chain(wait);
    Process::start(Path::new("ip"), Path::new("/"), arguments)
}

#[test]
#[ignore = "no test: the process that the test before this kills"]
fn a_process_that_pins_and_waits() {
    let pin = PathBuf::from(std::env::var_os("PIN").expect("where to"));
    let server = std::env::var_os("SERVER").and_then(|text| text.to_str()?.parse().ok()).expect("an address");
    let mut gate = KernelGate::load_pinned(&pin).expect("root");
    assert!(!gate.took_over());
    gate.set_services(vec![service(server)]).expect("a service");
    gate.fail_closed(true).expect("a flag");
    gate.apply(&[closed(ExcessTreatment::Reset)]).expect("a plan");
    let _attachment = gate.attach_pinned("client", Hook::Auto, &pin).expect("the namespace's interface");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_pin_that_cannot_be_is_refused_by_name_and_nothing_is_left() {
    let test = "pins that cannot be";
    let Some(gate) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let Some(files) = BpfFiles::require(test) else { return };
    testbed.link("client", "server");
    let pinned = |interface: &str, pin: &Path| {
        testbed.inside("server", || gate.attach_pinned(interface, Hook::Auto, pin))
    };

    let ordinary = TempDir::new().expect("a fresh directory");
    let error = pinned("client", &ordinary.path().join("gate")).expect_err("no BPF file system");
    assert!(matches!(error, AttachError::Pin(PinError::File { .. })), "{error}");
    assert!(error.to_string().contains("mount -t bpf"), "{error}");
    assert!(!has_program(&testbed, "server", "client"));

    // Of others: a map, a link.
    let check_others = |what: &str| {
        let error = pinned("client", &files.pin()).expect_err(what);
        assert!(matches!(error, AttachError::Pin(PinError::NoGate { .. })), "{what}: {error}");
        assert!(matches!(KernelGate::load_pinned(&files.pin()), Err(PinError::NoGate { .. })), "{what}");
        std::fs::remove_file(files.pin()).expect("a pin");
    };
    let mut object = load_object();
    let map = object.maps_mut().find(|map| map.name() == "passes");
    map.expect("a map").pin(files.pin()).expect("a BPF file system");
    check_others("a map");
    let program = object.progs().find(|program| program.name() == "apply_plans").expect("a program");
    let descriptor = program.as_fd();
    let link = testbed.inside("server", || link_of(descriptor, index_of("client"), &files.pin()));
    check_others("a link");
    drop(link);
    // The kernel lets go of a removed pin a little later, and the link with it.
    eventually("a free interface", || (!has_program(&testbed, "server", "client")).then_some(()));

    let first = pinned("client", &files.pin()).expect("a free interface");
    let error = pinned("lo", &files.pin()).expect_err("it is before another");
    let number = first.interface().expect("an interface");
    assert!(
        matches!(error, AttachError::Pin(PinError::Elsewhere { number: of, .. }) if of == number),
        "{error}"
    );
    assert!(has_program(&testbed, "server", "client") && !has_program(&testbed, "server", "lo"));
    drop(first);
    assert!(!files.pin().exists());
}
