//! A test's own BPF file system, and gates that another process left in it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flashweir_core::{Duration, Rate};
use flashweir_kernel::gate::{
    Ceiling, ExcessTreatment, Hook, KernelGate, Page, PinDirectory, Service, ServicePlan, Tiers,
};
use flashweir_testkit::{PATIENCE, Process, require_program};
use tempfile::TempDir;

/// Unmounted when dropped, and with it every gate that is left goes.
pub(crate) struct BpfFiles {
    mounted_at: TempDir,
}

impl BpfFiles {
    /// One, or a loud line that says what is missing.
    pub(crate) fn require(test: &str) -> Option<Self> {
        require_program("mount", test)?;
        let mounted_at = TempDir::new().expect("a fresh directory");
        run("mount", ["-t", "bpf", "bpf"].map(OsString::from), mounted_at.path());
        Some(Self { mounted_at })
    }

    /// A directory for pins, which is not there yet.
    pub(crate) fn pins(&self) -> PathBuf {
        self.mounted_at.path().join("pins")
    }

    /// The same as a value of the configuration.
    pub(crate) fn pins_text(&self) -> String {
        self.pins().display().to_string()
    }
}

impl Drop for BpfFiles {
    fn drop(&mut self) {
        run("umount", [OsString::from("--lazy")], self.mounted_at.path());
    }
}

/// Pins a gate before an interface of this thread's namespace that answers every new connection to these
/// servers, as a process that has just been stopped leaves it. It is pinned as that of the interface
/// `called`.
pub(crate) fn leave_gate(pins: &Path, interface: &str, called: &str, servers: &[SocketAddr]) {
    let pins = PinDirectory::open(pins).expect("a BPF file system");
    let mut gate = KernelGate::load().expect("the scene could");
    let service = |&at| Service { endpoints: vec![at], speaks_tls: false, page: Page::default() };
    gate.set_services(servers.iter().map(service).collect()).expect("services");
    let closed = ServicePlan {
        tiers: Tiers::one(Ceiling { rate: Rate::ZERO, burst: 1 }),
        refusal: ExcessTreatment::Answer,
        retry_after: Duration::from_secs(1),
        ..ServicePlan::default()
    };
    gate.apply(&vec![closed; servers.len()]).expect("a plan");
    // A busy machine may take longer to start the next process than a gate waits.
    gate.fail_closed(true).expect("a flag");
    gate.attach_pinned(interface, Hook::Generic, &pins.pin_of(called)).expect("a free interface").hand_over();
}

fn run(program: &str, arguments: impl IntoIterator<Item = OsString>, directory: &Path) {
    let arguments = arguments.into_iter().chain([directory.into()]);
    let finished = Process::run(Path::new(program), Path::new("/"), PATIENCE, arguments);
    assert_eq!(finished.code(), Some(0), "{program}: {}", finished.stderr);
}
