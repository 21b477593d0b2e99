//! The observer at a real interface: real connections through Linux's TCP on both sides, in separate
//! namespaces.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use flashweir_kernel::observe::{Observed, Observer};
use flashweir_testkit::{PATIENCE, Testbed, eventually, skip};

/// More than one packet holds, with or without offloads.
const RESPONSE_BYTES: usize = 300_000;

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

fn in_namespace(testbed: &Testbed, namespace: &str, command: &[&str]) {
    let name = testbed.full_name(namespace);
    let output = Command::new("ip").args(["netns", "exec", &name]).args(command).output().expect("ip runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// One exchange after the other: a request, a response to its end, and who closes first.
fn exchange(testbed: &Testbed, listener: &TcpListener, server_closes: bool) {
    let server = listener.local_addr().expect("an address");
    let connect = || TcpStream::connect_timeout(&server, PATIENCE);
    let mut client = testbed.inside("client", connect).expect("a connection");
    let (mut serving, _) = listener.accept().expect("the connection");
    for stream in [&client, &serving] {
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    }
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("room");
    let mut request = [0; 18];
    serving.read_exact(&mut request).expect("a request");
    let sender = std::thread::spawn(move || {
        serving.write_all(&vec![b'x'; RESPONSE_BYTES]).expect("a reader");
        serving
    });
    let mut response = vec![0; RESPONSE_BYTES];
    client.read_exact(&mut response).expect("a response");
    let mut serving = sender.join().expect("no panic");
    if server_closes {
        drop(serving);
        assert_eq!(client.read(&mut response).expect("an end"), 0);
    } else {
        drop(client);
        assert_eq!(serving.read(&mut request).expect("an end"), 0);
        // The server never says that it is done: the client is gone, and so the connection ends by a reset.
        let _ = socket2::SockRef::from(&serving).set_linger(Some(std::time::Duration::ZERO));
    }
}

/// Goal: what is counted of real connections is what happened. Method: with the offloads of real interfaces
/// and without them, so that packets are large ones in pieces, or small ones whole.
#[test]
fn real_connections_are_counted_as_they_are() {
    let test = "an observer at an interface";
    for (offload, family) in [("off", "IPv4"), ("on", "IPv4"), ("on", "IPv6")] {
        let Some(mut observer) = load(test) else { return };
        let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
        let [_, server] = testbed.link("client", "server");
        for (namespace, interface) in [("client", "server"), ("server", "client")] {
            for feature in ["tx", "sg", "tso", "gso", "gro"] {
                in_namespace(&testbed, namespace, &["ethtool", "-K", interface, feature, offload]);
            }
        }
        let server = if family == "IPv6" { give_ipv6(&testbed) } else { server.into() };
        let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
        let server = listener.local_addr().expect("an address");
        observer.watch(&[server]).expect("an address");
        let attachment = testbed.inside("server", || observer.attach("client")).expect("an interface");
        exchange(&testbed, &listener, true);
        exchange(&testbed, &listener, true);
        exchange(&testbed, &listener, false);
        // No server answers at the next port, and it is not watched.
        let elsewhere = SocketAddr::new(server.ip(), server.port() ^ 1);
        assert!(testbed.inside("client", || TcpStream::connect_timeout(&elsewhere, PATIENCE)).is_err());

        let mut observed = observer.read().expect("a reading");
        // The last FIN may still be on its way.
        let mut completed = observed.completed;
        eventually("both ends", || {
            completed += observer.read().expect("a reading").completed;
            (completed == 2).then_some(())
        });
        observed.completed = completed;
        check(&observed, server, &format!("{family}, offloads {offload}"));
        drop(attachment);
    }
}

fn check(observed: &Observed, server: SocketAddr, context: &str) {
    assert_eq!((observed.offered, observed.unique_offered), (3, 3), "{context}: {observed:?}");
    let destinations: Vec<_> = observed.destinations.iter().map(|at| (at.destination, at.offered)).collect();
    assert_eq!(destinations, [(server, 3)], "{context}");
    assert_eq!((observed.flows.begun, observed.flows.tracked), (3, 3), "{context}: {observed:?}");
    assert_eq!(observed.rates[0].responses(), 0, "{context}: no plan was ever changed");
    assert_eq!(observed.rates[1].responses(), 3, "{context}");
    // A response of 300 kB within the second reads as at most what 10 ms make of it, and at least that per
    // second.
    for bucket in observed.rates[1].buckets() {
        assert!((290_000..=31_000_000).contains(&bucket.middle()), "{context}: {bucket:?}");
    }
}

/// Gives both ends of the link an address more; the server's.
fn give_ipv6(testbed: &Testbed) -> IpAddr {
    for (namespace, interface, address) in
        [("client", "server", "fd00::1/64"), ("server", "client", "fd00::2/64")]
    {
        in_namespace(testbed, namespace, &["ip", "addr", "add", address, "dev", interface, "nodad"]);
    }
    "fd00::2".parse().expect("an address")
}
