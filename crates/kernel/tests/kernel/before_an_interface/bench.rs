//! A client and a server, and the gate between them.

use std::ffi::CString;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use flashweir_core::Rate;
use flashweir_kernel::gate::{
    Attachment, Ceiling, ExcessTreatment, Hook, KernelGate, Page, Service, ServicePlan, Tiers,
};
use flashweir_kernel::without_signals;
use flashweir_testkit::{Curl, CurlOutput, PATIENCE, Testbed, skip};
use libbpf_rs::{Object, ObjectBuilder};

/// A client and a server, the gate before the server's interface. The client's has a gate without services:
/// packets that a program sends back over a pair of interfaces are delivered only where a program receives
/// them.
pub(crate) struct Bench {
    pub(crate) gate: KernelGate,
    pub(crate) attachments: [Attachment; 2],
    pub(crate) server: SocketAddr,
    pub(crate) listener: TcpListener,
    pub(crate) testbed: Testbed,
}

impl Bench {
    pub(crate) fn require(test: &str, hook: Hook, family: Family) -> Option<Self> {
        Self::require_prepared(test, hook, family, |_| {})
    }

    /// `prepare` changes the link before the gate comes.
    pub(crate) fn require_prepared(
        test: &str,
        hook: Hook,
        family: Family,
        prepare: impl FnOnce(&Testbed),
    ) -> Option<Self> {
        let mut gate = load(test)?;
        let mut testbed = Testbed::require(test, &["client", "server"])?;
        let [_, server] = testbed.link("client", "server");
        prepare(&testbed);
        let server = if family == Family::V4 { server.into() } else { give_ipv6(&testbed) };
        let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
        let server = listener.local_addr().expect("an address");
        gate.set_services(vec![service(server)]).expect("a service");
        let passing = load(test)?;
        let peer = if hook == Hook::Native { Hook::Native } else { Hook::Generic };
        let attachments = [
            testbed.inside("server", || gate.attach("client", hook)).expect("an interface without a program"),
            testbed.inside("client", || passing.attach("server", peer)).expect("the same"),
        ];
        Some(Self { gate, attachments, server, listener, testbed })
    }

    /// Lets nothing new in.
    pub(crate) fn close(&mut self, refusal: ExcessTreatment) {
        self.gate.apply(&[closed(refusal)]).expect("a plan");
        self.gate.beat().expect("a beat");
    }

    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        connect(&self.testbed, self.server)
    }

    /// Both ends of a connection that the gate lets in.
    pub(crate) fn connection(&self) -> [TcpStream; 2] {
        let client = self.connect().expect("an open gate");
        let (server, _) = self.listener.accept().expect("the connection");
        server.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        [client, server]
    }

    pub(crate) fn curl(&self, curl: &Curl, arguments: &[&str]) -> CurlOutput {
        let url = format!("http://{}/", self.server);
        self.testbed.inside("client", || curl.get(&url, arguments))
    }
}

/// Address family of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

pub(crate) fn service(at: SocketAddr) -> Service {
    Service { endpoints: vec![at], speaks_tls: false, page: Page::default() }
}

/// A plan that lets nothing new in.
pub(crate) fn closed(refusal: ExcessTreatment) -> ServicePlan {
    let tiers = Tiers::one(Ceiling { rate: Rate::ZERO, burst: 1 });
    ServicePlan { tiers, refusal, retry_after: Duration::from_secs(10), ..ServicePlan::default() }
}

pub(crate) fn connect(testbed: &Testbed, server: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = testbed.inside("client", || TcpStream::connect_timeout(&server, PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a line and reads it back.
pub(crate) fn echo([client, server]: &mut [TcpStream; 2], line: &[u8]) {
    client.write_all(line).expect("room");
    let mut heard = vec![0; line.len()];
    server.read_exact(&mut heard).expect("the line");
    server.write_all(&heard).expect("room");
    client.read_exact(&mut heard).expect("the line again");
    assert_eq!(heard, line);
}

pub(crate) fn load(test: &str) -> Option<KernelGate> {
    match KernelGate::load() {
        Ok(gate) => Some(gate),
        Err(error) if error.is_unavailable() => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The compiled programs, loaded by another loader than ours: to the gate they belong to another owner.
pub(crate) fn load_object() -> Object {
    let compiled = concat!(env!("OUT_DIR"), "/gate.o");
    let object = ObjectBuilder::default().open_file(compiled).expect("ours");
    without_signals(|| object.load()).expect("ours")
}

/// The number of an interface of this thread's namespace.
pub(crate) fn index_of(interface: &str) -> u32 {
    let name = CString::new(interface).expect("no zero in it");
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// The program before an interface of a namespace, as `ip` shows it.
pub(crate) fn has_program(testbed: &Testbed, namespace: &str, interface: &str) -> bool {
    ip(&["-n", &testbed.full_name(namespace), "link", "show", interface]).contains("prog/xdp")
}

pub(crate) fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Gives both ends of the link an address more; the server's.
fn give_ipv6(testbed: &Testbed) -> IpAddr {
    for (namespace, interface, address) in
        [("client", "server", "fd00::1/64"), ("server", "client", "fd00::2/64")]
    {
        let name = testbed.full_name(namespace);
        ip(&["-n", &name, "addr", "add", address, "dev", interface, "nodad"]);
    }
    "fd00::2".parse().expect("an address")
}
