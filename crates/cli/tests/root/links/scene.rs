//! Senders, a router and receivers, each in a namespace; the router's link to the receivers is narrow. For
//! the tests and for `make bench-links`, which also puts the kernel's own disciplines there.

#![expect(clippy::disallowed_methods, reason = "senders keep a pace")]

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flashweir_testkit::{
    Client, Finished, Flashweir, PATIENCE, Process, Testbed, TokenBucket, eventually, skip,
};
use serde_json::Value;

pub(crate) const SENDERS: &str = "senders";
pub(crate) const ROUTER: &str = "router";
/// Also what the router's interface to them is called.
pub(crate) const RECEIVERS: &str = "receivers";
pub(crate) const LINK_BITS_PER_S: u64 = 10_000_000;
/// 120 ms of the link: what `tc` examples give a queue.
const QUEUE_BYTES: u32 = 150_000;
/// Enough for a timer of the kernel that is 5 ms late.
const BURST_BYTES: u32 = 6_250;
/// Reaction of the senders' TCP to loss. Every kernel has it in every namespace, and the paper's senders are
/// like it; a machine's own default may be BBR, which goes on at four thirds of its share while a third of
/// its packets is lost.
const CONGESTION_CONTROL: &str = "reno";
/// In the router's namespace, where no other program listens.
const ADMIN: &str = "127.0.0.1:9900";
/// Interval at which a thread checks whether it has to end.
const LOOK: Duration = Duration::from_millis(50);

/// The namespaces and the narrow link.
pub(crate) struct Scene {
    flashweir: PathBuf,
    receiver: IpAddr,
    pub(crate) testbed: Testbed,
}

/// Source of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// As much as TCP finds right.
    Tcp,
    /// Datagrams of this rate, bits a second, independent of loss.
    Udp(u64),
}

/// A running flow, ended when dropped.
pub(crate) struct Flow {
    received: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Scene {
    /// One whose link has a drop-tail queue, or a loud line that says what is missing.
    pub(crate) fn require(test: &str, flashweir: &str) -> Option<Self> {
        let mut testbed = Testbed::require(test, &[SENDERS, ROUTER, RECEIVERS])?;
        let [sender, near] = testbed.link(SENDERS, ROUTER);
        let [far, receiver] = testbed.link(ROUTER, RECEIVERS);
        testbed.set(ROUTER, "net/ipv4/ip_forward", "1");
        testbed.set(SENDERS, "net/ipv4/tcp_congestion_control", CONGESTION_CONTROL);
        testbed.route(SENDERS, receiver, near);
        testbed.route(RECEIVERS, sender, far);
        let scene = Self { flashweir: flashweir.into(), receiver: receiver.into(), testbed };
        scene.shape();
        Some(scene)
    }

    /// Makes the link narrow, with a drop-tail queue.
    pub(crate) fn shape(&self) {
        let bucket = TokenBucket {
            rate_bits_per_s: LINK_BITS_PER_S,
            burst_bytes: BURST_BYTES,
            limit_bytes: QUEUE_BYTES,
        };
        self.testbed.shape(ROUTER, RECEIVERS, bucket);
    }

    /// Runs a program of the router's namespace.
    pub(crate) fn in_router(&self, program: &str, arguments: &[&str]) -> Finished {
        let name = self.testbed.full_name(ROUTER);
        let all = ["netns", "exec", &name, program].into_iter().chain(arguments.iter().copied());
        Process::run(Path::new("ip"), Path::new("/"), PATIENCE, all)
    }

    /// Starts `flashweir router` with these arguments in the router's namespace.
    pub(crate) fn launch(&self, arguments: &[&str]) -> Process {
        let binary = Flashweir::new(self.flashweir.to_str().expect("a path in UTF-8"));
        let all = ["router", "--admin", ADMIN].into_iter().chain(arguments.iter().copied());
        self.testbed.inside(ROUTER, || binary.start(Path::new("/"), all))
    }

    /// Starts one that divides the link, and waits until it does; `None` after a loud line where this kernel
    /// or user cannot.
    pub(crate) fn divide(&self, test: &str, more: &[&str]) -> Option<Process> {
        let usual = [["--link", RECEIVERS], ["--link-rate", "10mbit"]];
        let usual = usual.iter().filter(|[flag, _]| !more.contains(flag)).flatten().copied();
        let mut router = self.launch(&usual.chain(more.iter().copied()).collect::<Vec<_>>());
        let is_ready = eventually("the router's readiness", || {
            if router.ended().is_some() {
                return Some(false);
            }
            self.ask("/readyz").map(|_| true)
        });
        if is_ready {
            return Some(router);
        }
        let said = router.stderr();
        assert!(
            ["need root", "needs Linux", "without programs"].iter().any(|known| said.contains(known)),
            "{said}"
        );
        skip(test, said.trim());
        None
    }

    /// The router's answer, if it answers.
    pub(crate) fn ask(&self, target: &str) -> Option<flashweir_testkit::Message> {
        self.testbed.inside(ROUTER, || {
            let mut client = Client::try_connect(ADMIN.parse().expect("an address")).ok()?;
            let request = format!("GET {target} HTTP/1.1\r\nHost: admin\r\nAccept: application/openmetrics-text\r\nConnection: close\r\n\r\n");
            client.try_send(request).ok()?;
            client.try_response().ok().filter(|response| response.status() == 200)
        })
    }

    /// The object `link` of the router's status.
    pub(crate) fn link(&self) -> Value {
        eventually("a status", || self.ask("/status")).json()["link"].clone()
    }

    /// Starts a flow from a sender to a receiver.
    pub(crate) fn start(&self, source: Source) -> Flow {
        let (received, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let threads = match source {
            Source::Tcp => self.start_tcp(&received, &ends),
            Source::Udp(bits_per_s) => self.start_udp(bits_per_s, &received, &ends),
        };
        Flow { received, ends, threads: threads.into() }
    }

    fn start_tcp(&self, received: &Arc<AtomicU64>, ends: &Arc<AtomicBool>) -> [JoinHandle<()>; 2] {
        let listener = self.testbed.inside(RECEIVERS, || TcpListener::bind((self.receiver, 0)));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let sender = self.testbed.inside(SENDERS, || TcpStream::connect_timeout(&address, PATIENCE));
        let mut sender = sender.expect("a connection");
        let (mut receiver, _) = listener.accept().expect("the connection");
        sender.set_write_timeout(Some(LOOK)).expect("a time limit");
        receiver.set_read_timeout(Some(LOOK)).expect("a time limit");
        let (received, receiver_ends, sender_ends) = (received.clone(), ends.clone(), ends.clone());
        let receive = move || {
            use std::io::Read as _;
            let mut room = vec![0; 64 << 10];
            while !receiver_ends.load(Relaxed) {
                received.fetch_add(receiver.read(&mut room).unwrap_or(0) as u64, Relaxed);
            }
        };
        let send = move || {
            use std::io::Write as _;
            let data = vec![b'x'; 16 << 10];
            while !sender_ends.load(Relaxed) {
                let _ = sender.write(&data);
            }
            // What is still in the queue of this end is of no use.
            let _ = sender.shutdown(std::net::Shutdown::Both);
        };
        [std::thread::spawn(receive), std::thread::spawn(send)]
    }

    fn start_udp(
        &self,
        bits_per_s: u64,
        received: &Arc<AtomicU64>,
        ends: &Arc<AtomicBool>,
    ) -> [JoinHandle<()>; 2] {
        const DATAGRAM_BYTES: usize = 1_472;
        /// With the headers of Ethernet, IPv4 and UDP.
        const FRAME_BITS: u64 = (DATAGRAM_BYTES as u64 + 42) * 8;
        let receiver =
            self.testbed.inside(RECEIVERS, || UdpSocket::bind((self.receiver, 0))).expect("a port");
        let address: SocketAddr = receiver.local_addr().expect("an address");
        let sender = self.testbed.inside(SENDERS, || UdpSocket::bind("0.0.0.0:0")).expect("a port");
        sender.connect(address).expect("a route");
        receiver.set_read_timeout(Some(LOOK)).expect("a time limit");
        let (received, receiver_ends, sender_ends) = (received.clone(), ends.clone(), ends.clone());
        let receive = move || {
            let mut room = vec![0; 2_048];
            while !receiver_ends.load(Relaxed) {
                received.fetch_add(receiver.recv(&mut room).unwrap_or(0) as u64, Relaxed);
            }
        };
        let send = move || {
            let gap = Duration::from_nanos(FRAME_BITS * 1_000_000_000 / bits_per_s);
            let data = [b'u'; DATAGRAM_BYTES];
            let mut due = Instant::now();
            while !sender_ends.load(Relaxed) {
                // A thread that comes late sends what is due at once, as a rate that does not respond would.
                let now = Instant::now();
                if due > now {
                    std::thread::sleep(due - now);
                }
                let _ = sender.send(&data);
                due += gap;
            }
        };
        [std::thread::spawn(receive), std::thread::spawn(send)]
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Shares that flows got.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// Payload of each flow, bits a second.
    pub(crate) goodput: Vec<f64>,
}

impl Shares {
    /// Waits until the flows have settled, then measures what each receives.
    pub(crate) fn measure(flows: &[Flow], settle: Duration, measure: Duration) -> Self {
        std::thread::sleep(settle);
        let read = || flows.iter().map(|flow| flow.received.load(Relaxed)).collect::<Vec<_>>();
        let (before, began) = (read(), Instant::now());
        std::thread::sleep(measure);
        let (after, elapsed_s) = (read(), began.elapsed().as_secs_f64());
        let goodput =
            after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8.0 / elapsed_s);
        Self { goodput: goodput.collect() }
    }

    /// Jain's index of all flows: 1 where all get the same.
    pub(crate) fn jain(&self) -> f64 {
        let sum: f64 = self.goodput.iter().sum();
        let squares: f64 = self.goodput.iter().map(|rate| rate * rate).sum();
        if squares == 0.0 { 0.0 } else { sum * sum / (self.goodput.len() as f64 * squares) }
    }

    /// The goodput of a flow that gets exactly its share of the link: payload of full frames.
    pub(crate) fn fair(&self) -> f64 {
        LINK_BITS_PER_S as f64 * 1_448.0 / 1_514.0 / self.goodput.len() as f64
    }
}
