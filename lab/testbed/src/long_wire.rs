//! A wire on which packets travel for a while.
//!
//! The kernel's own delay (`netem`) is missing from many kernels. So the two ends speak VXLAN (RFC 7348) to a
//! namespace between them, where two sockets take each frame, hold it for the delay and hand it on. The
//! threads that do it may be late on a busy machine by what the scheduler makes them wait; they never send
//! early or out of order.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::setpriority_process;

use crate::TestbedError;
use crate::link::{PACKET_BYTES, bring_up, join};
use crate::namespace::Namespace;
use crate::tools::run;

/// Packets under way in one direction; more wait in the socket.
const TRAVELLING: usize = 16_384;
/// Room for a burst that comes while the thread is not running, bytes: some 3,000 full packets.
const SOCKET_BYTES: usize = 8 << 20;
/// Interval at which a thread without packets checks whether the wire is to be taken down.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Least niceness (sched(7)).
const HIGHEST_PRIORITY: i32 = -20;
/// Port of VXLAN (RFC 7348 §5).
const PORT: u16 = 4_789;
/// Headers around a frame: Ethernet, IPv4, UDP and VXLAN, rounded up.
const ENVELOPE_BYTES: u16 = 100;

/// Two threads for each direction, ended when dropped, and the namespace between the ends.
#[derive(Debug)]
pub(crate) struct LongWire {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Goes after the threads, whose sockets would keep it alive.
    middle: Namespace,
}

impl LongWire {
    /// The wire of link number `link` between two namespaces; there its ends are interfaces of the names
    /// given, without addresses yet.
    pub(crate) fn new(
        link: u8,
        between: [&Namespace; 2],
        interfaces: [&str; 2],
        delay: Duration,
    ) -> Result<Self, TestbedError> {
        let middle = Namespace::new(&format!("wire{link}"))?;
        let ends = [0, 1].map(|side| End::new(link, side));
        let socket = |side: usize| {
            let end = &ends[side];
            end.lay(between[side], interfaces[side], &middle)?;
            let socket = middle.inside(|| end.socket())?;
            Ok(Arc::new(socket.map_err(TestbedError::kernel(format!("{} cannot listen", end.middle)))?))
        };
        let sockets = [socket(0)?, socket(1)?];
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let (sender, receiver) = sync_channel(TRAVELLING);
            let (source, target) = (Arc::clone(&sockets[from]), Arc::clone(&sockets[to]));
            let (over, address) = (Arc::clone(&over), ends[to].outside);
            threads.push(std::thread::spawn(move || take(&source, delay, &over, &sender)));
            threads.push(std::thread::spawn(move || hand_on(&target, address, &receiver)));
        }
        Ok(Self { over, threads, middle })
    }

    /// Frames that came while the sockets were full.
    pub(crate) fn lost(&self) -> Result<u64, TestbedError> {
        self.middle.inside(datagrams_lost)?
    }
}

impl Drop for LongWire {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; the wire is gone either way.
            let _ = thread.join();
        }
    }
}

/// One end: the pair of interfaces between a namespace and the middle, by their addresses.
struct End {
    link: u8,
    side: usize,
    outside: Ipv4Addr,
    middle: Ipv4Addr,
}

impl End {
    fn new(link: u8, side: usize) -> Self {
        let address = |host: u8| Ipv4Addr::new(10, 201 + side as u8, link, host);
        Self { link, side, outside: address(1), middle: address(2) }
    }

    fn lay(&self, namespace: &Namespace, interface: &str, middle: &Namespace) -> Result<(), TestbedError> {
        let names = [namespace.name(), middle.name()];
        let [outside, inside] = [format!("wire{}", self.link), format!("end{}", self.side)];
        join(names, [&outside, &inside], PACKET_BYTES + ENVELOPE_BYTES)?;
        bring_up(names[0], &outside, self.outside)?;
        bring_up(names[1], &inside, self.middle)?;
        let [network, local, remote, port] =
            [self.link.to_string(), self.outside.to_string(), self.middle.to_string(), PORT.to_string()];
        let vxlan = ["type", "vxlan", "id", &network, "local", &local, "remote", &remote, "dstport", &port];
        let what = ["-n", names[0], "link", "add", "name", interface, "mtu", &PACKET_BYTES.to_string()];
        run("ip", &[what.as_slice(), &vxlan, &["nolearning"]].concat()).map(drop)
    }

    fn socket(&self) -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((self.middle, PORT))?;
        socket.set_read_timeout(Some(LOOK_EVERY))?;
        set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES)?;
        Ok(socket)
    }
}

/// A frame in its envelope, and when it arrives.
type Travelling = (Instant, Box<[u8]>);

fn take(socket: &UdpSocket, delay: Duration, over: &AtomicBool, to: &SyncSender<Travelling>) {
    run_before_others();
    let mut frame = [0; (PACKET_BYTES + ENVELOPE_BYTES) as usize];
    while !over.load(Ordering::Relaxed) {
        // An error is the end of a wait, or the echo of a frame that the other side no longer listens for.
        let Ok(length) = socket.recv(&mut frame) else { continue };
        if to.send((Instant::now() + delay, frame[..length].into())).is_err() {
            return;
        }
    }
}

fn hand_on(socket: &UdpSocket, to: Ipv4Addr, from: &Receiver<Travelling>) {
    run_before_others();
    while let Ok((due, frame)) = from.recv() {
        while let Some(wait) = due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
            std::thread::park_timeout(wait);
        }
        // Refused when the other side is being taken down: then no receiver waits for it.
        let _ = socket.send_to(&frame, (to, PORT));
    }
}

/// Gives this thread the highest ordinary priority: a wire that waits for the machine's other work delivers
/// in bursts, which overflow buffers that a steady stream would not.
fn run_before_others() {
    // A container may forbid it: then the wire is late like other threads, and reports what it lost.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
}

/// Datagrams that came to full sockets in this thread's namespace.
fn datagrams_lost() -> Result<u64, TestbedError> {
    const BOOKS: &str = "/proc/thread-self/net/snmp";
    let text = std::fs::read_to_string(BOOKS).map_err(TestbedError::kernel(BOOKS))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let pairs = lines.next().zip(lines.next());
    let lost = pairs.and_then(|(names, values)| {
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
    });
    lost.ok_or_else(|| TestbedError::Answer { what: "RcvbufErrors", text: text.clone() })
}
