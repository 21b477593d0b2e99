//! The observer at interfaces of separate network namespaces: what it leaves there, and what it leaves alone.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use flashweir_testkit::{PATIENCE, Process, Signal, Testbed, TokenBucket, eventually, skip};
use libbpf_rs::query::LinkInfoIter;

use super::*;
use crate::interface::index_of;
use crate::observe::attach::attach_filters;
use crate::observe::{AttachError, Attachment};
use crate::program::LoadError;

/// A client and a server; the observer is to stand where the server's responses leave for the client.
struct Bench {
    observer: Observer,
    server: SocketAddr,
    listener: TcpListener,
    testbed: Testbed,
}

/// The interface of the server's namespace.
const INTERFACE: &str = "client";

impl Bench {
    fn require(test: &str) -> Option<Self> {
        let mut observer = load(test)?;
        let mut testbed = Testbed::require(test, &["client", "server"])?;
        let [_, server]: [Ipv4Addr; 2] = testbed.link("client", "server");
        let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
        let server = listener.local_addr().expect("an address");
        observer.watch(&[server]).expect("an address");
        Some(Self { observer, server, listener, testbed })
    }

    fn attach(&mut self) -> Result<Attachment, AttachError> {
        let observer = &mut self.observer;
        self.testbed.inside("server", || observer.attach(INTERFACE))
    }

    /// As where there is no TCX.
    fn attach_filters(&self) -> Result<Attachment, AttachError> {
        let programs = ["flashweir_in", "flashweir_out"].map(|name| self.observer.program.descriptor(name));
        let programs = programs.map(|program| program.expect("a program"));
        self.testbed.inside("server", || {
            attach_filters(programs, INTERFACE, index_of(INTERFACE).expect("an interface"))
        })
    }

    /// Drops an attachment where it was made: filters are removed through the namespace's own networking.
    fn detach(&self, attachment: Attachment) {
        self.testbed.inside("server", || drop(attachment));
    }

    /// Attempts that it sees of one connection.
    fn attempts(&mut self) -> u64 {
        let stream = self.testbed.inside("client", || TcpStream::connect_timeout(&self.server, PATIENCE));
        let (_server, _client) =
            (self.listener.accept().expect("a connection"), stream.expect("a connection"));
        self.observer.reading().offered
    }

    fn tc(&self, arguments: &[&str]) -> String {
        let name = self.testbed.full_name("server");
        let output = Command::new("tc").args(["-n", &name]).args(arguments).output().expect("tc runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn filters(&self, way: &str) -> usize {
        let text = self.tc(&["filter", "show", "dev", INTERFACE, way]);
        text.lines().filter(|line| line.contains("handle")).count()
    }

    fn has_discipline(&self) -> bool {
        self.tc(&["qdisc", "show", "dev", INTERFACE]).contains("clsact")
    }
}

fn load(test: &str) -> Option<Observer> {
    match Observer::load(4_096) {
        Ok(observer) => Some(observer),
        Err(error) if error.is_unavailable() => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The numbers of the links that a process holds.
fn links_of(process: u32) -> Vec<u32> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fdinfo")) else { return Vec::new() };
    let texts = descriptors.flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let number =
        |text: &str| text.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok());
    texts.filter_map(|text| number(&text)).collect()
}

#[test]
fn dropped_or_with_its_interface_gone_the_observer_is_gone() {
    let Some(mut bench) = Bench::require("the end of an observer") else { return };
    let attachment = bench.attach().expect("an interface");
    assert!(!attachment.outlives_its_process() && attachment.interface().is_some());
    assert_eq!(bench.attempts(), 1);
    bench.detach(attachment);
    assert_eq!(bench.attempts(), 0);
    // Two observers see the same, and neither hides anything from the other.
    let mut other = load("a second observer").expect("as the first");
    other.watch(&[bench.server]).expect("an address");
    let attachments = [
        bench.attach().expect("an interface"),
        bench.testbed.inside("server", || other.attach(INTERFACE)).expect("the same"),
    ];
    assert_eq!((bench.attempts(), other.reading().offered), (1, 1));
    drop(attachments);
    let attachment = bench.attach().expect("an interface");
    let name = bench.testbed.full_name("server");
    let deleted =
        Command::new("ip").args(["-n", &name, "link", "delete", INTERFACE]).status().expect("ip runs");
    assert!(deleted.success());
    eventually("the interface's end", || attachment.interface().is_none().then_some(()));
}

#[test]
fn killed_the_observer_is_gone() {
    let Some(bench) = Bench::require("an observer's killed process") else { return };
    let this = std::env::current_exe().expect("this program");
    let namespace = bench.testbed.full_name("server");
    let wait = "observe::tests::attachments::a_process_that_observes_and_waits";
    let this = this.to_str().expect("a path in UTF-8");
    let arguments = ["netns", "exec", &namespace, this, "--ignored", "--exact", wait];
    let mut process = Process::start(Path::new("ip"), Path::new("/"), arguments);
    let held = eventually("the observer", || {
        assert!(process.ended().is_none(), "{}", process.stderr());
        Some(links_of(process.id())).filter(|links| links.len() == 2)
    });
    process.signal(Signal::Kill);
    eventually("its end", || (!LinkInfoIter::default().any(|link| held.contains(&link.id))).then_some(()));
}

#[test]
#[ignore = "no test: the process that the test before this kills"]
fn a_process_that_observes_and_waits() {
    let mut observer = Observer::load(1_024).expect("root");
    let _attachment = observer.attach(INTERFACE).expect("the namespace's interface");
    loop {
        std::thread::park();
    }
}

#[test]
fn filters_do_what_links_do_and_take_the_place_of_those_left_behind() {
    let Some(mut bench) = Bench::require("an observer by filters") else { return };
    let attachment = bench.attach_filters().expect("an interface");
    assert!(attachment.outlives_its_process());
    assert!(bench.testbed.inside("server", || attachment.interface()).is_some());
    assert_eq!((bench.filters("ingress"), bench.filters("egress"), bench.attempts()), (1, 1, 1));
    // As if its process had been killed.
    std::mem::forget(attachment);
    let attachment = bench.attach_filters().expect("an interface with what was left behind");
    assert_eq!((bench.filters("ingress"), bench.filters("egress"), bench.attempts()), (1, 1, 1));
    bench.detach(attachment);
    assert_eq!((bench.filters("ingress"), bench.filters("egress"), bench.attempts()), (0, 0, 0));
}

#[test]
fn filters_leave_the_network_as_it_was() {
    let Some(bench) = Bench::require("what an observer by filters leaves") else { return };
    let attachment = bench.attach_filters().expect("an interface");
    bench.detach(attachment);
    assert!(!bench.has_discipline(), "it was made for the filters");
    // Another process puts a filter there meanwhile: it stays, and so does its discipline.
    let attachment = bench.attach_filters().expect("an interface");
    bench.tc(&["filter", "add", "dev", INTERFACE, "ingress", "pref", "9", "u32", "match", "u32", "0", "0"]);
    bench.detach(attachment);
    assert!(bench.has_discipline());
    assert!(bench.tc(&["filter", "show", "dev", INTERFACE, "ingress"]).contains("u32"));
    bench.tc(&["filter", "delete", "dev", INTERFACE, "ingress"]);
    let attachment = bench.attach_filters().expect("an interface");
    bench.detach(attachment);
    assert!(bench.has_discipline(), "another process made it");
}

#[test]
fn an_interface_that_does_not_take_the_observer_says_why() {
    let Some(mut bench) = Bench::require("interfaces that take no observer") else { return };
    let observer = &mut bench.observer;
    let error =
        bench.testbed.inside("server", || observer.attach("no-such-thing")).expect_err("no interface");
    assert_eq!(error.to_string(), "there is no interface `no-such-thing` in this network namespace");

    let name = bench.testbed.full_name("server");
    let added = Command::new("ip").args(["-n", &name, "tuntap", "add", "bare", "mode", "tun"]).output();
    if added.is_ok_and(|output| output.status.success()) {
        let observer = &mut bench.observer;
        let error = bench.testbed.inside("server", || observer.attach("bare")).expect_err("a tunnel");
        assert!(matches!(error, AttachError::NotEthernet(_)), "{error}");
    } else {
        skip("an observer at a tunnel", "no tunnel can be made");
    }

    // Another owner's filter with the number of ours: here the two programs, each in the other's place.
    let programs = ["flashweir_out", "flashweir_in"].map(|name| bench.observer.program.descriptor(name));
    let programs = programs.map(|program| program.expect("a program"));
    let attach = || attach_filters(programs, INTERFACE, index_of(INTERFACE).expect("an interface"));
    let exchanged = bench.testbed.inside("server", attach).expect("free places");
    let error = bench.attach_filters().expect_err("occupied");
    assert!(matches!(&error, AttachError::Occupied { program, .. } if program == "flashweir_out"), "{error}");
    assert_eq!((bench.filters("ingress"), bench.filters("egress")), (1, 1), "they are still there");
    bench.detach(exchanged);
}

#[test]
fn the_queues_books_are_those_that_tc_shows() {
    let Some(mut bench) = Bench::require("books of a queue") else { return };
    // Half a megabit, and room for few packets behind a burst.
    let bucket = TokenBucket { rate_bits_per_s: 500_000, burst_bytes: 3_000, limit_bytes: 6_000 };
    bench.testbed.shape("server", "client", bucket);
    let before = bench.testbed.queue("server", "client");
    let _attachment = bench.attach().expect("an interface");
    let socket = bench.testbed.inside("server", || std::net::UdpSocket::bind((bench.server.ip(), 0)));
    let socket = socket.expect("an address");
    let to = SocketAddr::new([10, 200, 1, 1].into(), 9);
    for _ in 0..100 {
        // The sender may get an error for a packet that does not fit in the queue.
        let _ = socket.send_to(&[0; 1_000], to);
    }
    let queue = bench.observer.reading().queue.expect("a queue");
    let after = bench.testbed.queue("server", "client");
    assert_eq!(queue.dropped, after.dropped - before.dropped);
    assert!(queue.dropped > 50 && queue.backlog_bytes > 2_000 && queue.marked == 0, "{queue:?}");
    assert!(queue.packets >= 1 && queue.packets <= after.sent - before.sent, "{queue:?} {after:?}");
    // The next reading begins where this one ended.
    assert_eq!(bench.observer.reading().queue.map(|queue| queue.dropped), Some(0));
    // A new queue counts from zero.
    bench.testbed.shape("server", "client", TokenBucket { rate_bits_per_s: 400_000, ..bucket });
    assert!(bench.observer.reading().queue.is_some_and(|queue| queue.dropped < 1_000));
}

#[test]
fn without_the_rights_it_says_which_it_needs() {
    let test = "an observer without rights";
    let (Some(_), Some(setpriv)) = (load(test), flashweir_testkit::require_program("setpriv", test)) else {
        return;
    };
    let this = std::env::current_exe().expect("this program");
    let nothing = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"];
    let run = "observe::tests::attachments::loading_without_rights";
    let run = [this.to_str().expect("a path in UTF-8"), "--ignored", "--exact", run];
    let finished = Process::run(&setpriv, Path::new("/"), PATIENCE, nothing.into_iter().chain(run));
    assert_eq!(finished.code(), Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("1 passed"), "{}", finished.stdout);
}

#[test]
#[ignore = "no test: what the test before this runs without rights"]
fn loading_without_rights() {
    let error = Observer::load(1_024).expect_err("no rights");
    assert!(matches!(error, LoadError::NotPermitted), "{error}");
}
