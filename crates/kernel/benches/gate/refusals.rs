//! Processor time of the server's side for each refused new connection, softirq included.
//!
//! Client and server are namespaces joined by a pair of interfaces, without offloads. Each interface's receive work
//! runs in a kernel thread of its own (threaded NAPI), that of the server on the first processor, everything of the
//! client on the second: so what the kernel spends on the server's behalf is that thread's time, and exact. Drops and
//! resets are of SYNs sent raw; answers are whole exchanges with real clients, as are nginx's, and once more sent raw:
//! real clients on one processor send so little that each packet wakes the thread, which costs more than the packet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashweir_core::Rate;
use flashweir_kernel::gate::{Attachment, Ceiling, Hook, KernelGate, Page, Refusal, Service, ServicePlan};
use flashweir_testkit::packet::{Segment, flag};
use flashweir_testkit::{PATIENCE, Process, Testbed, eventually, require_program};

/// The namespaces, and each other's interface in them: names by which their threads are found.
const CLIENT: &str = "asker";
const SERVER: &str = "refuser";
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);
const CLIENTS: usize = 16;
/// Responses that clients have read.
static REFUSED: AtomicU64 = AtomicU64::new(0);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";

pub(crate) fn measure() {
    println!("Processor time of the server's side for each refused new connection, us (median of {ROUNDS})");
    let test = "costs of refusals";
    let Some(mut testbed) = Testbed::require(test, &[CLIENT, SERVER]) else { return };
    let Some(nginx) = require_program("nginx", test) else { return };
    let [_, server] = testbed.link(CLIENT, SERVER);
    let server = SocketAddr::from((server, 8_080));
    let nginx = Nginx::start(&testbed, &nginx, server);

    let by_the_gate = [
        ("answer, real clients", Refusal::Answer, Load::Clients),
        ("answer, four packets each sent raw", Refusal::Answer, Load::Exchanges),
        ("reset, sent raw", Refusal::Reset, Load::Openings),
        ("drop, sent raw", Refusal::Drop, Load::Openings),
    ];
    let mut costs = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        costs[0].push(nginx_refuses(&testbed, &nginx, server));
        for (costs, (_, refusal, load)) in costs[1..].iter_mut().zip(by_the_gate) {
            costs.push(gate_refuses(&testbed, server, refusal, load));
        }
    }
    let medians = costs.map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        costs[ROUNDS / 2]
    });
    let names = by_the_gate.map(|(name, ..)| name);
    for (name, cost_us) in ["nginx, return 503, real clients"].iter().chain(&names).zip(medians) {
        println!("  {cost_us:>6.2}  {name} (nginx has {:.1} times that)", medians[0] / cost_us);
    }
}

/// What asks to be let in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Sockets that ask and read.
    Clients,
    /// All that a client sends to be answered, without waiting for the answer: four packets, as the counters of the
    /// gate say that real clients send.
    Exchanges,
    /// SYNs only.
    Openings,
}

/// nginx that refuses everything.
struct Nginx {
    process: Process,
    _directory: tempfile::TempDir,
}

impl Nginx {
    fn start(testbed: &Testbed, program: &Path, at: SocketAddr) -> Self {
        let directory = tempfile::TempDir::new().expect("a fresh directory");
        let root = directory.path();
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {0}/pid; error_log {0}/errors;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;\n\
             uwsgi_temp_path {0}/u; scgi_temp_path {0}/s; server {{ listen {at} backlog=4096; return 503; }} }}\n",
            root.display()
        );
        std::fs::write(root.join("nginx.conf"), config).expect("a writable directory");
        let arguments = ["-p".as_ref(), root.as_os_str(), "-c".as_ref(), "nginx.conf".as_ref()];
        let process = testbed.inside(SERVER, || Process::start(program, root, arguments));
        testbed.inside(CLIENT, || eventually("nginx listening", || TcpStream::connect(at).ok()));
        pin(process.id(), 0);
        Self { process, _directory: directory }
    }
}

fn nginx_refuses(testbed: &Testbed, nginx: &Nginx, server: SocketAddr) -> f64 {
    // Receiving in a thread takes NAPI, and a pair of interfaces has it with GRO or with a program.
    for (namespace, interface) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        in_namespace(testbed, namespace, &format!("ethtool -K {interface} gro on"));
    }
    let receiving = Receiving::start(testbed);
    let process = nginx.process.id();
    let before_ns = spent_ns(process) + receiving.spent_ns();
    let before = REFUSED.load(Ordering::Relaxed);
    testbed.inside(CLIENT, || ask(server));
    let refused = REFUSED.load(Ordering::Relaxed) - before;
    let spent_ns = spent_ns(process) + receiving.spent_ns() - before_ns;
    drop(receiving);
    for (namespace, interface) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        in_namespace(testbed, namespace, &format!("ethtool -K {interface} gro off"));
    }
    spent_ns as f64 / 1e3 / refused as f64
}

fn gate_refuses(testbed: &Testbed, server: SocketAddr, refusal: Refusal, load: Load) -> f64 {
    let mut gate = KernelGate::load().expect("the part before could");
    let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
    gate.set_services(vec![service]).expect("a service");
    gate.fail_closed(true).expect("a flag");
    let everybody = Some(Ceiling { rate: Rate::ZERO, burst: 1 });
    let retry_after = Duration::from_secs(10);
    gate.apply(&[ServicePlan { everybody, refusal, retry_after, ..Default::default() }]).expect("a plan");
    let passing = KernelGate::load().expect("as before");
    let _attachments: [Attachment; 2] = [
        testbed.inside(SERVER, || gate.attach(CLIENT, Hook::Native)).expect("a pair of interfaces"),
        testbed.inside(CLIENT, || passing.attach(SERVER, Hook::Native)).expect("the other"),
    ];
    let frames = frames(&gate, server, load);
    let receiving = Receiving::start(testbed);
    let (before, before_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns());
    testbed.inside(CLIENT, || if load == Load::Clients { ask(server) } else { flood(&frames) });
    let (counts, spent_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns() - before_ns);
    assert_eq!((counts.admitted, counts.unsent), (0, 0), "{counts:?}");
    let refused = match load {
        Load::Openings => counts.reset + counts.dropped - before.reset - before.dropped,
        Load::Clients | Load::Exchanges => counts.responses - before.responses,
    };
    spent_ns as f64 / 1e3 / refused as f64
}

/// What some thousand clients send, one after the other. To be answered, each needs the number that the gate gives it;
/// the gate says it in a test run.
fn frames(gate: &KernelGate, server: SocketAddr, load: Load) -> Vec<Vec<u8>> {
    let of_one = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let opening = Segment::syn(SocketAddr::from(([198, 18, high, low], 40_000)), server);
        if load != Load::Exchanges {
            return vec![opening.frame()];
        }
        let reply = |segment: &Segment| {
            let packet = gate.try_frame(&segment.frame(), 1).expect("a run").packet;
            Segment::read(&packet).expect("a segment")
        };
        let accepted = opening.after(&reply(&opening));
        let request = accepted.clone().carrying(GET);
        let closed = request.after(&reply(&request)).flagged(flag::FIN);
        [opening, accepted, request, closed].map(|segment| segment.frame()).into()
    };
    (0..4_096).flat_map(of_one).collect()
}

/// Connects, asks, and reads to the end, one connection after the other.
fn ask(server: SocketAddr) {
    let until = Instant::now() + ROUND;
    let one = move || {
        pin(0, 1);
        while Instant::now() < until {
            let mut stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a handshake");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            stream.write_all(GET).expect("room");
            let mut response = Vec::new();
            stream.read_to_end(&mut response).expect("a response to its end");
            assert!(response.starts_with(b"HTTP/1.1 503 "));
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(one);
        }
    })
}

/// Sends frames past the stack, over and over.
fn flood(frames: &[Vec<u8>]) {
    pin(0, 1);
    let socket = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).expect("root");
    let interface = std::ffi::CString::new(SERVER).expect("no zero in it");
    // SAFETY: the pointer is to a string that ends in zero.
    let index = unsafe { libc::if_nametoindex(interface.as_ptr()) };
    let mut address = socket2::SockAddrStorage::zeroed();
    // SAFETY: a `sockaddr_ll` fits the storage, and every pattern of bits is a value of it.
    let link = unsafe { address.view_as::<libc::sockaddr_ll>() };
    link.sll_family = libc::AF_PACKET as u16;
    link.sll_ifindex = index.cast_signed();
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the storage holds an address of this family and length.
    let address = unsafe { socket2::SockAddr::new(address, length) };
    let until = Instant::now() + ROUND;
    while Instant::now() < until {
        for frame in frames {
            // Refused when the queue is full: what counts is what arrives.
            let _ = socket.send_to(frame, &address);
        }
    }
}

/// The threads that receive for the server, one for each queue; the client's go to the other processor.
struct Receiving {
    threads: Vec<u32>,
}

impl Receiving {
    fn start(testbed: &Testbed) -> Self {
        let threads = |namespace: &str, interface: &str, processor: usize| {
            in_namespace(testbed, namespace, &format!("echo 1 > /sys/class/net/{interface}/threaded"));
            let threads = threads_of(interface);
            assert!(!threads.is_empty(), "{interface} receives in no thread of its own");
            threads.iter().for_each(|&thread| pin(thread, processor));
            threads
        };
        threads(CLIENT, SERVER, 1);
        Self { threads: threads(SERVER, CLIENT, 0) }
    }

    fn spent_ns(&self) -> u64 {
        self.threads.iter().map(|&thread| spent_ns(thread)).sum()
    }
}

/// Kernel threads that receive for an interface of this name, in whatever namespace.
fn threads_of(interface: &str) -> Vec<u32> {
    let prefix = format!("napi/{interface}-");
    let mut threads: Vec<u32> = std::fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with(&prefix))
        })
        .collect();
    threads.sort_unstable();
    threads
}

/// Time a process has had on a processor (its `schedstat`).
fn spent_ns(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).expect("a living process");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

/// Keeps a process, or with 0 this thread, on one processor.
fn pin(process: u32, processor: usize) {
    // SAFETY: a set is an array of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is large enough for the processors of any machine this is run on.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is to a set that outlives the call, and its size is given.
    let status = unsafe { libc::sched_setaffinity(process.cast_signed(), size_of_val(&set), &raw const set) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

fn in_namespace(testbed: &Testbed, namespace: &str, command: &str) {
    let arguments = ["netns", "exec", &testbed.full_name(namespace), "sh", "-c", command];
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}
