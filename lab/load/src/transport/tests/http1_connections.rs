//! Choice of the connection for a request: new, idle, replaced, bounded, from which address.

use super::scripted::{OK, Seen, Server, Step, answer, write};
use super::{Client, LONG, look_at_sockets, run};
use crate::transport::{ConnectionCounts, Protocol, Transport, TransportOptions, reachable};
use crate::{ErrorKind, LoadError, LoadTarget};
use http::Method;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

fn scripts<const N: usize>(scripts: [Vec<[Step; 2]>; N]) -> Vec<Vec<Step>> {
    scripts.into_iter().map(|script| script.into_iter().flatten().collect()).collect()
}

fn bounded(address: SocketAddr, protocol: Protocol, most: usize) -> Client {
    let options = TransportOptions { protocol, connections_most: Some(most), ..Default::default() };
    Client::with(&format!("http://{address}/"), options)
}

fn paths(seen: &[Seen]) -> Vec<Vec<&str>> {
    seen.iter().map(|seen| seen.heads.iter().filter_map(|head| head.split(' ').nth(1)).collect()).collect()
}

const fn source(last: u8) -> Option<IpAddr> {
    Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
}

#[test]
fn strangers_open_a_connection_each() {
    let server = Server::start(scripts([vec![answer(OK)], vec![answer(OK)]]));
    let client = Client::new(server.address, Protocol::Http1New);
    run(async {
        client.get("/1").await.unwrap();
        client.get("/2").await.unwrap();
    });
    assert_eq!(client.counts(), ConnectionCounts { opened: 2, ..Default::default() });
    let seen = server.join();
    assert_eq!(paths(&seen), [["/1"], ["/2"]]);
    assert!(seen.iter().all(|seen| seen.heads[0].contains("\r\nconnection: close\r\n")), "{seen:?}");
}

#[test]
fn connections_go_to_each_address_in_turn() {
    let servers = [(); 2].map(|()| Server::start(scripts([vec![answer(OK)], vec![answer(OK)]])));
    let mut target = LoadTarget::parse("http://127.0.0.1/").unwrap();
    target.addresses = servers.iter().map(|server| server.address).collect();
    let transport = Transport::new(&target, &TransportOptions::default()).unwrap();
    let client = Client { target, transport };
    run(async {
        for path in ["/1", "/2", "/3", "/4"] {
            client.get(path).await.unwrap();
        }
    });
    let seen = servers.map(Server::join);
    assert_eq!([paths(&seen[0]), paths(&seen[1])], [[["/1"], ["/3"]], [["/2"], ["/4"]]]);
}

#[test]
fn an_idle_connection_is_used_again() {
    let server = Server::start(scripts([vec![answer(OK), answer(OK), answer(OK)]]));
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        for path in ["/1", "/2", "/3"] {
            client.get(path).await.unwrap();
        }
    });
    assert_eq!(client.counts(), ConnectionCounts { opened: 1, reused: 2, ..Default::default() });
    let seen = server.join();
    assert_eq!(paths(&seen), [["/1", "/2", "/3"]]);
    assert!(!seen[0].heads[0].contains("connection:"), "{seen:?}");
}

#[test]
fn what_cannot_be_trusted_is_not_used_again() {
    for untrusted in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and then some",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let first = [Step::ReadHead, write(untrusted), Step::AwaitClose].into_iter().collect();
        let server = Server::start(vec![first, answer(OK).into_iter().collect()]);
        let client = Client::new(server.address, Protocol::Http1KeepAlive);
        run(async {
            client.get("/1").await.unwrap();
            client.get("/2").await.unwrap();
        });
        assert_eq!(client.counts().reused, 0, "{untrusted}");
        assert_eq!(paths(&server.join()), [["/1"], ["/2"]]);
    }
}

/// An answer to no request, or the end, arrives while the connection is idle: seen before the next request is
/// sent, so even a request that must not be sent twice is safe.
#[test]
fn an_idle_connection_that_is_no_longer_quiet_is_closed() {
    for unasked in ["HTTP/1.1 408 Slow\r\ncontent-length: 0\r\n\r\n", ""] {
        let (go, released) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let first = vec![Step::ReadHead, write(OK), Step::Await(released), write(unasked), Step::End(ended)];
        let server = Server::start(vec![first, answer(OK).into_iter().collect()]);
        let client = Client::new(server.address, Protocol::Http1KeepAlive);
        run(async {
            client.get("/1").await.unwrap();
            drop(go);
            has_ended.recv_timeout(LONG).unwrap();
            look_at_sockets().await;
            let post = client.prepare(Method::POST, "");
            client.ask(None, &post, "/2").await.unwrap();
        });
        assert_eq!((client.counts().opened, client.counts().reused), (2, 0), "{unasked:?}");
        assert_eq!(paths(&server.join()), [["/1"], ["/2"]]);
    }
}

#[test]
fn a_connection_that_closes_under_a_request_is_replaced_once_where_that_is_safe() {
    let closes_on_second = || scripts([vec![answer(OK), answer("")], vec![answer(OK)]]);
    let server = Server::start(closes_on_second());
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        client.get("/1").await.unwrap();
        let mut sent = 0;
        let get = client.prepare(Method::GET, "");
        client.transport.ask(None, &get, "/2", || sent += 1).await.unwrap();
        assert_eq!(sent, 1);
    });
    assert_eq!((client.counts().opened, client.counts().reused), (2, 1));
    assert_eq!(paths(&server.join()), [vec!["/1", "/2"], vec!["/2"]]);

    let server = Server::start(scripts([vec![answer(OK), answer("")]]));
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        client.get("/1").await.unwrap();
        let post = client.prepare(Method::POST, "");
        assert_eq!(client.ask(None, &post, "/2").await.unwrap_err(), ErrorKind::Closed);
    });
    assert_eq!(client.counts().opened, 1);
    server.join();

    // A new connection that closes is a failure, not replaced again.
    let server = Server::start(scripts([vec![answer(OK), answer("")], vec![answer("")]]));
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        client.get("/1").await.unwrap();
        assert_eq!(client.get("/2").await.unwrap_err(), ErrorKind::Closed);
    });
    assert_eq!(server.join().len(), 2);
}

#[test]
fn people_wait_for_a_connection_in_the_order_they_came() {
    let one_by_one = |protocol, scripts, wanted: &[Vec<&str>]| {
        let server = Server::start(scripts);
        let client = bounded(server.address, protocol, 1);
        run(async {
            let (one, two, three) =
                tokio::join!(biased; client.get("/1"), client.get("/2"), client.get("/3"));
            assert!(one.is_ok() && two.is_ok() && three.is_ok());
            assert!(one.unwrap().end_at <= two.unwrap().end_at);
        });
        assert_eq!(paths(&server.join()), wanted);
    };
    let kept = scripts([vec![answer(OK), answer(OK), answer(OK)]]);
    one_by_one(Protocol::Http1KeepAlive, kept, &[vec!["/1", "/2", "/3"]]);
    let new = scripts([vec![answer(OK)], vec![answer(OK)], vec![answer(OK)]]);
    one_by_one(Protocol::Http1New, new, &[vec!["/1"], vec!["/2"], vec!["/3"]]);
}

#[test]
fn whoever_stops_waiting_takes_no_connection() {
    let (go, released) = mpsc::channel();
    let script = vec![Step::ReadHead, Step::Await(released), write(OK), Step::ReadHead, write(OK)];
    let server = Server::start(vec![script]);
    let client = bounded(server.address, Protocol::Http1KeepAlive, 1);
    run(async {
        let leaves = async {
            let waiting = tokio::time::timeout(Duration::from_millis(30), client.get("/2")).await;
            waiting.unwrap_err();
            drop(go);
        };
        let (first, (), third) = tokio::join!(biased; client.get("/1"), leaves, client.get("/3"));
        assert!(first.is_ok() && third.is_ok());
    });
    assert_eq!(paths(&server.join()), [["/1", "/3"]]);
}

#[test]
fn an_idle_connection_makes_room_for_another_address() {
    let first = vec![Step::ReadHead, write(OK), Step::AwaitClose];
    let server = Server::start(vec![first, answer(OK).into_iter().collect()]);
    let client = bounded(server.address, Protocol::Http1KeepAlive, 1);
    run(async {
        client.get_from(source(5), "/1").await.unwrap();
        client.get_from(source(6), "/2").await.unwrap();
    });
    let seen = server.join();
    let peers: Vec<_> = seen.iter().map(|seen| Some(seen.peer.ip())).collect();
    assert_eq!(peers, [source(5), source(6)]);
    assert_eq!(client.counts(), ConnectionCounts { opened: 2, ..Default::default() });
}

#[test]
fn people_from_different_addresses_share_nothing() {
    let server = Server::start(scripts([vec![answer(OK), answer(OK)], vec![answer(OK)]]));
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        for (last, path) in [(5, "/1"), (6, "/2"), (5, "/3")] {
            client.get_from(source(last), path).await.unwrap();
        }
    });
    let seen = server.join();
    assert_eq!(paths(&seen), [vec!["/1", "/3"], vec!["/2"]]);
    assert_eq!((Some(seen[0].peer.ip()), Some(seen[1].peer.ip())), (source(5), source(6)));
}

#[test]
fn an_address_this_machine_does_not_have_is_our_own_fault() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(listener.local_addr().unwrap(), Protocol::Http1New);
    // Reserved for documentation (RFC 5737).
    let foreign = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    assert_eq!(run(client.get_from(foreign, "/")).unwrap_err(), ErrorKind::GeneratorSocket);
    assert_eq!(client.counts().failed, 1);
}

/// A listener whose queue is full drops connection requests, and the kernel asks again after a second.
#[test]
fn connection_requests_sent_again_are_counted() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let _queued = TcpStream::connect(address).unwrap();
    let client = Client::new(address, Protocol::Http1New);
    run(async {
        let get = client.prepare(Method::GET, "");
        let asked = client.transport.ask(None, &get, "/", || unreachable!("it cannot be sent"));
        tokio::time::timeout(Duration::from_millis(1500), asked).await.unwrap_err();
    });
    let counts = client.counts();
    assert_eq!((counts.opened, counts.failed, counts.given_up), (0, 0, 1));
    assert!((1..=3).contains(&counts.syn_retransmissions), "{counts:?}");
}

#[test]
fn whether_anybody_listens_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = LoadTarget::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    reachable(&target, None).unwrap();
    reachable(&target, source(9)).unwrap();
    listener.accept().unwrap();
    assert_eq!(Some(listener.accept().unwrap().1.ip()), source(9));
    drop(listener);
    assert!(matches!(reachable(&target, None), Err(LoadError::Unreachable { .. })));
}
