//! Interfaces that do not take the gate, that change under it, and that carry more than plain packets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;

use flashweir_kernel::gate::{AttachError, Declined, ExcessTreatment, Hook, KernelGate};
use flashweir_testkit::{Curl, PATIENCE, Testbed, checksum, eventually, pattern, require_program, skip};
use libbpf_rs::{Xdp, XdpFlags};

use crate::before_an_interface::bench::{
    Bench, Family, closed, connect, echo, has_program, index_of, ip, load, load_object, service,
};

#[test]
fn an_interface_that_does_not_take_the_gate_says_why_and_stays_as_it_was() {
    let test = "interfaces that do not take a kernel gate";
    let Some(gate) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, server]: [Ipv4Addr; 2] = testbed.link("client", "server");
    let attach = |gate: &KernelGate, hook| testbed.inside("server", || gate.attach("client", hook));

    let error = gate.attach("no-such-thing", Hook::Auto).expect_err("no such interface");
    assert_eq!(error.to_string(), "there is no interface `no-such-thing` in this network namespace");

    let set_mtu = |namespace: &str, interface: &str| {
        ip(&["-n", &testbed.full_name(namespace), "link", "set", interface, "mtu", "9000"]);
    };
    set_mtu("server", "client");
    set_mtu("client", "server");
    let error = attach(&gate, Hook::Native).expect_err("frames larger than a page");
    assert!(matches!(error, AttachError::Driver { .. }), "{error}");
    assert!(error.to_string().contains("MTU"), "{error}");
    assert!(!has_program(&testbed, "server", "client"));
    // Nor has every driver XDP.
    let loopback =
        testbed.inside("server", || gate.attach("lo", Hook::Auto)).expect("the stack takes any frame");
    assert_eq!(loopback.hook(), Hook::Generic);
    assert!(matches!(loopback.declined(), Some(Declined::Driver(_))), "{:?}", loopback.declined());
    drop(loopback);
    // It carries packets as before.
    let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
    let address = listener.local_addr().expect("an address");
    testbed.inside("client", || TcpStream::connect_timeout(&address, PATIENCE)).expect("a connection");
}

/// Goal: left to itself the gate chooses a hook from which its answers arrive. Method: a pair whose other
/// end has nothing to receive them with but the stack, and a tap, whose driver has XDP.
#[test]
fn where_the_driver_would_lose_answers_the_stack_is_chosen() {
    let test = "hooks a kernel gate chooses";
    let Some(mut gate) = load(test) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, server] = testbed.link("client", "server");
    let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
    let server = listener.local_addr().expect("an address");
    gate.set_services(vec![service(server)]).expect("a service");
    gate.fail_closed(true).expect("a flag");
    let attach =
        |gate: &KernelGate, interface| testbed.inside("server", || gate.attach(interface, Hook::Auto));
    let attachment = attach(&gate, "client").expect("a free interface");
    assert_eq!(attachment.hook(), Hook::Generic);
    assert!(matches!(attachment.declined(), Some(Declined::Pair)));
    gate.apply(&[closed(ExcessTreatment::Reset)]).expect("a plan");
    assert_eq!(connect(&testbed, server).expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    gate.apply(&[closed(ExcessTreatment::Answer)]).expect("a plan");
    let mut client = connect(&testbed, server).expect("a handshake with the gate");
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("room");
    let mut response = String::new();
    client.read_to_string(&mut response).expect("a response to its end");
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    drop(attachment);

    if !Path::new("/dev/net/tun").exists() {
        return skip(test, "there is no /dev/net/tun");
    }
    ip(&["-n", &testbed.full_name("server"), "tuntap", "add", "dev", "tap", "mode", "tap"]);
    let attachment = attach(&gate, "tap").expect("a driver with XDP");
    assert_eq!(attachment.hook(), Hook::Native);
    assert!(attachment.declined().is_none());
}

#[test]
fn a_program_that_is_there_already_is_named_and_left_alone() {
    let test = "an interface with another's program";
    let (Some(gate), Some(other)) = (load(test), load(test)) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    testbed.link("client", "server");
    let attach = |gate: &KernelGate, hook| testbed.inside("server", || gate.attach("client", hook));
    let all = [Hook::Auto, Hook::Native, Hook::Generic];
    let occupant = |hook| match attach(&gate, hook).expect_err("occupied") {
        error @ AttachError::Occupied { .. } => {
            let text = error.to_string();
            let AttachError::Occupied { occupant, .. } = error else { unreachable!("it was one") };
            (occupant, text)
        }
        error => panic!("{error}"),
    };

    // One that a process holds by a link, as another gate.
    let first = attach(&other, Hook::Native).expect("an interface without a program");
    for hook in all {
        let (occupant, text) = occupant(hook);
        assert!(occupant.program > 0 && occupant.link.is_some(), "{text}");
        assert!(
            text.starts_with("`client` already runs an XDP program, `flashweir_gate` (number "),
            "{text}"
        );
        assert!(text.contains("the process or the pin that holds its link"), "{text}");
    }
    drop(first);

    // One that was left there, as `ip` leaves them.
    let object = load_object();
    let foreign = object.progs().find(|program| program.name() == "apply_plans").expect("a program");
    let descriptor = foreign.as_fd();
    testbed.inside("server", || {
        let index = index_of("client").cast_signed();
        Xdp::new(descriptor).attach(index, XdpFlags::DRV_MODE).expect("a free interface");
    });
    for hook in all {
        let (occupant, text) = occupant(hook);
        assert_eq!((occupant.name.as_str(), occupant.link), ("apply_plans", None), "{text}");
        assert!(text.ends_with("remove it with `ip link set client xdp off`"), "{text}");
    }
    // What is advised helps.
    ip(&["-n", &testbed.full_name("server"), "link", "set", "client", "xdp", "off"]);
    assert_eq!(attach(&gate, Hook::Native).expect("a free interface").hook(), Hook::Native);
}

#[test]
fn a_gate_stays_before_an_interface_that_is_renamed_and_goes_with_one_that_is_deleted() {
    let test = "interfaces that change under a kernel gate";
    let Some(mut bench) = Bench::require(test, Hook::Auto, Family::V4) else { return };
    bench.close(ExcessTreatment::Reset);
    bench.gate.fail_closed(true).expect("a flag");
    let number = bench.attachments[0].interface();
    assert!(number.is_some());
    let server = bench.testbed.full_name("server");
    ip(&["-n", &server, "link", "set", "client", "name", "renamed"]);
    assert_eq!(bench.attachments[0].interface(), number);
    assert_eq!(bench.connect().expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    let attach = |bench: &Bench| bench.testbed.inside("server", || bench.gate.attach("client", Hook::Auto));
    assert!(matches!(attach(&bench), Err(AttachError::NoInterface(name)) if name == "client"));

    ip(&["-n", &server, "link", "delete", "renamed"]);
    eventually("the interface's end", || bench.attachments[0].interface().is_none().then_some(()));
    // A new interface of the old name is another one: it has no gate until it is given one.
    bench.testbed.link("client", "server");
    assert!(!has_program(&bench.testbed, "server", "client"));
    let again = attach(&bench).expect("a new interface");
    assert!(again.interface().is_some() && bench.attachments[0].interface().is_none());
}

/// Goal: packets that an offload joined, and frames larger than a page, pass whole, and are answered like
/// others. Method: some megabytes each way over a connection that was there first, at each setting, and
/// curl with a request of several segments.
#[test]
fn jumbo_frames_and_joined_segments_pass_and_are_answered() {
    for (hook, mtu, expected) in [
        (Hook::Native, "1500", Hook::Native),
        (Hook::Generic, "1500", Hook::Generic),
        (Hook::Auto, "9000", Hook::Generic),
    ] {
        let test = format!("kernel gate with offloads, {hook:?}, {mtu} bytes");
        let (Some(curl), Some(_)) = (Curl::require(&test), require_program("ethtool", &test)) else { return };
        let prepare = |testbed: &Testbed| {
            for (namespace, interface) in [("server", "client"), ("client", "server")] {
                let name = testbed.full_name(namespace);
                ip(&["-n", &name, "link", "set", interface, "mtu", mtu]);
                let offloads = ["tx", "on", "tso", "on", "gso", "on", "gro", "on"];
                ip(&[&["netns", "exec", &name, "ethtool", "-K", interface], offloads.as_slice()].concat());
            }
        };
        let Some(mut bench) = Bench::require_prepared(&test, hook, Family::V4, prepare) else { return };
        assert_eq!(bench.attachments[0].hook(), expected);
        let mut connection = bench.connection();
        bench.gate.fail_closed(true).expect("a flag");
        bench.close(ExcessTreatment::Answer);
        let long = format!("X-Long: {}", "x".repeat(6_000));
        let answer = bench.curl(&curl, &["--header", &long]);
        assert_eq!((answer.code, answer.status), (0, 503), "{test}: {}", answer.stderr);
        echo(&mut connection, b"small");
        let [client, server] = connection;
        for (from, to) in [(&client, &server), (&server, &client)] {
            transfer(from, to);
        }
        let counts = bench.gate.counters().expect("counters")[0];
        assert_eq!((counts.admitted, counts.unsent), (1, 0), "{test}: {counts:?}");
    }
}

/// Sends some megabytes and compares what arrives.
fn transfer(mut from: &TcpStream, mut to: &TcpStream) {
    const BYTES: usize = 4 << 20;
    let sent = pattern(BYTES);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            from.write_all(&sent).expect("room");
            from.shutdown(Shutdown::Write).expect("an open connection");
        });
        let mut received = Vec::new();
        to.read_to_end(&mut received).expect("all of it");
        received
    });
    assert_eq!((received.len(), checksum(&received)), (BYTES, checksum(&sent)));
}
