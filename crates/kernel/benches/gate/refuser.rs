//! Gates before both interfaces, of which the server's refuses everything.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::Duration;

use flashweir_core::Rate;
use flashweir_kernel::gate::{
    Attachment, Ceiling, ExcessTreatment, Hook, KernelGate, Page, Service, ServicePlan, Tiers,
};
use flashweir_testkit::Testbed;
use libbpf_rs::libbpf_sys;

use crate::arena::{CLIENT, SERVER, index_of, join_received};
use crate::carried::Carrier;

/// A gate that refuses everything before the server's interface, and one before the client's that passes
/// everything: what a program sends back from the driver over a pair of interfaces arrives only where a
/// program receives it.
pub(crate) struct Refuser<'a> {
    pub(crate) gate: KernelGate,
    attachments: Vec<Attachment>,
    end: Option<OwnedFd>,
    testbed: &'a Testbed,
}

impl<'a> Refuser<'a> {
    pub(crate) fn new(
        testbed: &'a Testbed,
        server: SocketAddr,
        refusal: ExcessTreatment,
        hook: Hook,
    ) -> Self {
        let mut gate = KernelGate::load().expect("the part before could");
        let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
        gate.set_services(vec![service]).expect("a service");
        gate.fail_closed(true).expect("a flag");
        let tiers = Tiers::one(Ceiling { rate: Rate::ZERO, burst: 1 });
        let retry_after = Duration::from_secs(10);
        gate.apply(&[ServicePlan { tiers, refusal, retry_after, ..Default::default() }]).expect("a plan");
        let passing = KernelGate::load().expect("as before");
        // At the stack's door as well, a program is run in the thread only where receiving is.
        join_received(testbed, hook == Hook::Generic);
        let attachments = [(SERVER, CLIENT, &gate), (CLIENT, SERVER, &passing)];
        let attachments = attachments.map(|(namespace, interface, gate)| {
            testbed.inside(namespace, || gate.attach(interface, hook)).expect("a pair of interfaces")
        });
        Self { gate, attachments: attachments.into(), end: None, testbed }
    }
}

impl Refuser<'_> {
    /// Drops what comes back, before the client's stack.
    pub(crate) fn end_replies(&mut self, carrier: &Carrier) {
        self.attachments.truncate(1);
        let (testbed, program) = (self.testbed, carrier.end());
        self.end = Some(testbed.inside(CLIENT, || attach(&program, SERVER)));
    }
}

impl Drop for Refuser<'_> {
    fn drop(&mut self) {
        self.attachments.clear();
        self.end = None;
        join_received(self.testbed, false);
    }
}

/// Puts a program into the driver of an interface of this thread's namespace, until what is returned is
/// dropped.
fn attach(program: &OwnedFd, interface: &str) -> OwnedFd {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: libbpf_sys::XDP_FLAGS_DRV_MODE,
        ..Default::default()
    };
    let (index, at) = (index_of(interface).cast_signed(), libbpf_sys::BPF_XDP);
    // SAFETY: the descriptor is open, the options outlive the call and say their own size.
    let link = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index, at, &raw const options) };
    assert!(link >= 0, "{}", std::io::Error::from_raw_os_error(-link));
    // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
    unsafe { OwnedFd::from_raw_fd(link) }
}
