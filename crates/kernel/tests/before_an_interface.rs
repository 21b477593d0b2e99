//! The gate before a real interface: real clients, Linux's TCP on both sides, network namespaces of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flashweir_core::Rate;
use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{
    AttachError, Attachment, Ceiling, Hook, KernelGate, Page, Refusal, Service, ServicePlan,
};
use flashweir_testkit::{Curl, PATIENCE, Process, Signal, Testbed, eventually, require_program, skip};

/// A client and a server, the gate before the server's interface. The client's has a gate without services: packets
/// that a program sends back over a pair of interfaces are delivered only where a program receives them.
struct Bench {
    gate: KernelGate,
    _attachments: [Attachment; 2],
    server: SocketAddr,
    listener: TcpListener,
    testbed: Testbed,
}

impl Bench {
    fn require(test: &str, hook: Hook, family: Family) -> Option<Self> {
        let mut gate = load(test)?;
        let mut testbed = Testbed::require(test, &["client", "server"])?;
        let [_, server] = testbed.link("client", "server");
        let server = if family == Family::V4 { server.into() } else { give_ipv6(&testbed) };
        let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
        let server = listener.local_addr().expect("an address");
        let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
        gate.set_services(vec![service]).expect("a service");
        let passing = load(test)?;
        let attachments = [
            testbed.inside("server", || gate.attach("client", hook)).expect("an interface without a program"),
            testbed.inside("client", || passing.attach("server", Hook::Native)).expect("the same"),
        ];
        Some(Self { gate, _attachments: attachments, server, listener, testbed })
    }

    /// Lets nothing new in.
    fn close(&mut self, refusal: Refusal) {
        let everybody = Some(Ceiling { rate: Rate::ZERO, burst: 1 });
        let retry_after = Duration::from_secs(10);
        let plan = ServicePlan { everybody, refusal, retry_after, ..ServicePlan::default() };
        self.gate.apply(&[plan]).expect("a plan");
        self.gate.beat().expect("a beat");
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = self.testbed.inside("client", || TcpStream::connect_timeout(&self.server, PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn curl(&self, curl: &Curl, arguments: &[&str]) -> flashweir_testkit::CurlOutput {
        let url = format!("http://{}/", self.server);
        self.testbed.inside("client", || curl.get(&url, arguments))
    }
}

/// Which addresses the two have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
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

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn load(test: &str) -> Option<KernelGate> {
    match KernelGate::load() {
        Ok(gate) => Some(gate),
        Err(error) if error.is_unavailable() => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Sends a line and reads it back.
fn echo(client: &mut TcpStream, server: &mut TcpStream, line: &[u8]) {
    client.write_all(line).expect("room");
    let mut heard = vec![0; line.len()];
    server.read_exact(&mut heard).expect("the line");
    server.write_all(&heard).expect("room");
    client.read_exact(&mut heard).expect("the line again");
    assert_eq!(heard, line);
}

#[test]
fn curl_is_answered_reset_or_left_alone_and_who_is_connected_stays_so() {
    for (hook, family) in
        [(Hook::Native, Family::V4), (Hook::Generic, Family::V4), (Hook::Native, Family::V6)]
    {
        let name = format!("kernel gate before an interface, {hook:?}, {family:?}");
        let Some(mut bench) = Bench::require(&name, hook, family) else { return };
        let Some(curl) = Curl::require(&name) else { return };
        let mut client = bench.connect().expect("an open gate");
        let (mut server, _) = bench.listener.accept().expect("the connection");
        server.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        echo(&mut client, &mut server, b"before");

        bench.close(Refusal::Answer);
        for method in [&[][..], &["--head"], &["--data", "a=b"], &["--http1.0"]] {
            let answer = bench.curl(&curl, method);
            assert_eq!((answer.code, answer.status), (0, 503), "{method:?}: {}", answer.stderr);
            let fields = format!("{:?}", answer.fields);
            let retry_after = answer.fields.first("retry-after").unwrap_or_else(|| panic!("{fields}"));
            assert!((10..=20).contains(&retry_after.trim().parse::<u32>().expect("seconds")), "{fields}");
            assert_eq!(
                answer.fields.first("flashweir-decision"),
                Some("kernel; reason=flash_crowd"),
                "{fields}"
            );
            // For HEAD, curl writes the head where a body would be.
            let end =
                if method == ["--head"] { "close\r\n\r\n" } else { "Too busy: please try again shortly.\n" };
            assert!(answer.text().ends_with(end), "{method:?}: {}", answer.text());
            echo(&mut client, &mut server, b"GET / HTTP/1.1\r\n\r\n");
        }
        // A client that sends something longer than a segment, and one that sends its request in pieces.
        let long = "x".repeat(6_000);
        let answer = bench.curl(&curl, &["--header", &format!("X-Long: {long}")]);
        assert_eq!((answer.code, answer.status), (0, 503), "{}", answer.stderr);
        let mut slow = bench.connect().expect("a handshake with the gate");
        slow.write_all(b"G").expect("room");
        let mut whole = String::new();
        slow.read_to_string(&mut whole).expect("a response to its end");
        assert!(whole.starts_with("HTTP/1.1 503 "), "{whole}");

        bench.close(Refusal::Reset);
        assert_eq!(bench.connect().expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        assert_eq!(bench.curl(&curl, &[]).code, 7, "curl: could not connect");
        echo(&mut client, &mut server, b"meanwhile");

        bench.close(Refusal::Drop);
        assert_eq!(bench.curl(&curl, &["--connect-timeout", "1"]).code, 28, "curl: timed out");
        echo(&mut client, &mut server, b"after");

        let counts = bench.gate.counters().expect("counters")[0];
        assert_eq!((counts.admitted, counts.unsent), (1, 0), "{counts:?}");
        assert_eq!((counts.answered, counts.late_resets), (6, 0), "{counts:?}");
        assert!(counts.responses >= 6 && counts.reset == 2 && counts.dropped >= 1, "{counts:?}");
    }
}

/// Sockets of TCP in the server's namespace, and connections that wait there for stray segments (of
/// `/proc/net/sockstat`; its other numbers are the whole machine's).
fn sockets(bench: &Bench) -> [Option<String>; 2] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/sockstat");
    let text = bench.testbed.inside("server", read).expect("a kernel with TCP");
    let line = text.lines().find(|line| line.starts_with("TCP:")).expect("its line");
    ["inuse", "tw"].map(|name| line.split(' ').skip_while(|word| *word != name).nth(1).map(str::to_owned))
}

#[test]
fn ten_thousand_refusals_leave_nothing_behind() {
    const CLIENTS: usize = 4;
    const REFUSALS: usize = 10_000;
    let Some(mut bench) = Bench::require("10,000 refusals by the kernel gate", Hook::Native, Family::V4)
    else {
        return;
    };
    bench.close(Refusal::Answer);
    // The test itself may take longer than the gate waits for a beat.
    bench.gate.fail_closed(true).expect("a flag");
    let before = sockets(&bench);
    let done = AtomicUsize::new(0);
    let server = bench.server;
    bench.testbed.inside("client", || {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while done.fetch_add(1, Ordering::Relaxed) < REFUSALS {
                        let mut stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a handshake");
                        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
                        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("room");
                        let mut response = Vec::new();
                        stream.read_to_end(&mut response).expect("a response to its end");
                        assert!(response.starts_with(b"HTTP/1.1 503 "), "{response:?}");
                    }
                });
            }
        });
    });
    let counts = bench.gate.counters().expect("counters")[0];
    assert!(counts.answered >= 10_000 && counts.responses >= 10_000, "{counts:?}");
    assert_eq!((counts.unique_offered, counts.admitted), (10_000, 0), "{counts:?}");
    assert_eq!(sockets(&bench), before);
    // Nor at the client: each connection was closed by both sides, the gate first, so nobody waits for anything.
    let left = || std::fs::read_to_string("/proc/thread-self/net/tcp").expect("a kernel with TCP");
    eventually("the last connections' end", || {
        (bench.testbed.inside("client", left).lines().count() == 1).then_some(())
    });
}

/// The program before an interface of a namespace, as `ip` tells it.
fn has_program(testbed: &Testbed, namespace: &str, interface: &str) -> bool {
    ip(&["-n", &testbed.full_name(namespace), "link", "show", interface]).contains("prog/xdp")
}

#[test]
fn the_gate_is_gone_when_dropped_and_when_its_process_is_killed() {
    let test = "the end of a kernel gate";
    let Some(gate) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, _] = testbed.link("client", "server");
    let attachment = testbed.inside("server", || gate.attach("client", Hook::Auto)).expect("an interface");
    assert_eq!(attachment.hook(), Hook::Native);
    assert!(has_program(&testbed, "server", "client") && attachment.interface().is_some());
    drop(attachment);
    assert!(!has_program(&testbed, "server", "client"));

    let this = std::env::current_exe().expect("this program");
    let namespace = testbed.full_name("server");
    let wait = ["--ignored", "--exact", "a_process_that_attaches_and_waits"];
    let arguments = ["netns", "exec", &namespace, this.to_str().expect("a path in UTF-8")];
    let all = arguments.into_iter().chain(wait);
    let mut process = Process::start(Path::new("ip"), Path::new("/"), all);
    eventually("the gate", || {
        assert!(process.ended().is_none(), "{}", process.stderr());
        has_program(&testbed, "server", "client").then_some(())
    });
    process.signal(Signal::Kill);
    eventually("its end", || (!has_program(&testbed, "server", "client")).then_some(()));

    let attachment = testbed.inside("server", || gate.attach("client", Hook::Auto)).expect("an interface");
    ip(&["-n", &namespace, "link", "delete", "client"]);
    eventually("the interface's end", || attachment.interface().is_none().then_some(()));
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
    let run = [this.to_str().expect("a path in UTF-8"), "--ignored", "--exact", "loading_without_rights"];
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

#[test]
fn an_interface_that_does_not_take_the_gate_says_why_and_stays_as_it_was() {
    let test = "interfaces that do not take a kernel gate";
    let (Some(gate), Some(other)) = (load(test), load(test)) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, server]: [Ipv4Addr; 2] = testbed.link("client", "server");
    let attach = |gate: &KernelGate, hook| testbed.inside("server", || gate.attach("client", hook));

    let error = gate.attach("no-such-thing", Hook::Auto).expect_err("no such interface");
    assert_eq!(error.to_string(), "there is no interface `no-such-thing` in this network namespace");
    let _first = attach(&gate, Hook::Native).expect("an interface without a program");
    for hook in [Hook::Auto, Hook::Native, Hook::Generic] {
        let error = attach(&other, hook).expect_err("occupied");
        assert!(matches!(error, AttachError::Occupied { program, .. } if program > 0), "{error}");
    }
    drop(_first);

    let set_mtu = |namespace: &str, interface: &str| {
        ip(&["-n", &testbed.full_name(namespace), "link", "set", interface, "mtu", "9000"]);
    };
    set_mtu("server", "client");
    set_mtu("client", "server");
    let error = attach(&gate, Hook::Native).expect_err("frames larger than a page");
    assert!(matches!(error, AttachError::Driver { .. }), "{error}");
    assert!(error.to_string().contains("MTU"), "{error}");
    assert!(!has_program(&testbed, "server", "client"));
    let generic = attach(&gate, Hook::Auto).expect("the stack takes any frame");
    assert_eq!(generic.hook(), Hook::Generic);
    drop(generic);
    // It carries packets as before.
    let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
    let address = listener.local_addr().expect("an address");
    testbed.inside("client", || TcpStream::connect_timeout(&address, PATIENCE)).expect("a connection");
}
