//! A name server on loopback, and look-ups that ask it.

use super::*;
use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

/// Names that the server was asked for, once for each question.
type Asked = Arc<Mutex<Vec<String>>>;

/// Records that the server has of a name.
#[derive(Clone, Copy)]
enum Known {
    Has(&'static [&'static str]),
    Fails,
    /// More than a datagram holds.
    HasMany(u8),
}

const ZONE: &[(&str, Known)] = &[
    ("app.test", Known::Has(&["10.9.0.1", "10.9.0.2", "2001:db8::1"])),
    ("old.test", Known::Has(&["10.9.0.3"])),
    ("broken.test", Known::Fails),
    ("pool.test", Known::HasMany(200)),
    ("api.corp.test", Known::Has(&["10.9.0.4"])),
    ("api.test", Known::Has(&["10.9.0.5"])),
];

fn answer(question: &[u8], asked: &Asked, over_tcp: bool) -> Vec<u8> {
    let message = Message::from_octets(question).unwrap();
    let question = message.sole_question().unwrap();
    let (name, of_type) = (question.qname(), question.qtype());
    asked.lock().unwrap().push(name.to_string());
    let known = ZONE.iter().find(|(known, _)| *known == name.to_string()).map(|(_, known)| *known);
    let code = match known {
        None => Rcode::NXDOMAIN,
        Some(Known::Fails) => Rcode::SERVFAIL,
        Some(_) => Rcode::NOERROR,
    };
    let addresses: Vec<IpAddr> = match known {
        Some(Known::Has(list)) => list.iter().map(|address| address.parse().unwrap()).collect(),
        Some(Known::HasMany(count)) if over_tcp => {
            (0..count).map(|last| IpAddr::from([10, 9, 1, last])).collect()
        }
        _ => Vec::new(),
    };
    let mut built = MessageBuilder::new_vec().start_answer(&message, code).unwrap();
    built.header_mut().set_tc(matches!(known, Some(Known::HasMany(_))) && !over_tcp);
    for address in addresses {
        match address {
            IpAddr::V4(ip) if of_type == Rtype::A => built.push((&name, 60, A::new(ip))).unwrap(),
            IpAddr::V6(ip) if of_type == Rtype::AAAA => built.push((&name, 60, Aaaa::new(ip))).unwrap(),
            _ => {}
        }
    }
    built.finish()
}

/// A name server for [`ZONE`], by datagrams and by TCP at one port.
async fn serve() -> (SocketAddr, Asked) {
    let asked = Asked::default();
    let (listener, socket) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        if let Ok(socket) = UdpSocket::bind(address).await {
            break (listener, socket);
        }
    };
    let address = listener.local_addr().unwrap();
    let seen = asked.clone();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            socket.send_to(&answer(&buffer[..length], &seen, false), from).await.unwrap();
        }
    });
    let seen = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; usize::from(length)];
                    stream.read_exact(&mut question).await.unwrap();
                    let answer = answer(&question, &seen, true);
                    stream.write_u16(answer.len().try_into().unwrap()).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            });
        }
    });
    (address, asked)
}

/// The files' contents, and the server at the address instead of the name servers among them.
fn names(hosts: &str, resolv_conf: &str, server: SocketAddr) -> Names {
    let mut names = Names::new(hosts.to_owned(), &format!("nameserver 127.0.0.1\n{resolv_conf}"));
    names.servers.servers.truncate(1);
    names.servers.servers[0].addr = server;
    names
}

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|address| address.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_name_has_the_addresses_of_both_families() {
    let (server, _) = serve().await;
    let found = async |name: &str| names("", "", server).look_up(name).await;
    assert_eq!(found("app.test").await.unwrap(), ips(&["2001:db8::1", "10.9.0.1", "10.9.0.2"]));
    assert_eq!(found("old.test.").await.unwrap(), ips(&["10.9.0.3"]), "no address of the other family");
    assert_eq!(found("::1").await.unwrap(), ips(&["::1"]), "an address is itself");
}

#[tokio::test]
async fn the_hosts_file_comes_first_and_no_server_is_asked() {
    let (server, asked) = serve().await;
    let hosts =
        "# comment\n10.8.0.1 App.test alias # old.test\n2001:db8::8\tapp.test\nnonsense app.test\n10.8.0.2\n";
    for name in ["app.test", "APP.TEST", "app.test."] {
        let found = names(hosts, "", server).look_up(name).await.unwrap();
        assert_eq!(found, ips(&["10.8.0.1", "2001:db8::8"]));
    }
    assert_eq!(names(hosts, "", server).look_up("alias").await.unwrap(), ips(&["10.8.0.1"]));
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(names(hosts, "", server).look_up("old.test").await.unwrap(), ips(&["10.9.0.3"]), "a comment");
}

#[tokio::test]
async fn a_missing_name_is_not_a_failing_server() {
    let (server, _) = serve().await;
    let gone = names("", "", server).look_up("gone.test").await.unwrap_err();
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    let broken = names("", "", server).look_up("broken.test").await.unwrap_err();
    assert!(broken.get_ref().is_some_and(|error| error.is::<Unanswered>()), "{broken:?}");
    // A socket that was bound and closed: nothing listens there, and the kernel says so at once.
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nothing = names("", "options timeout:1", closed).look_up("app.test").await.unwrap_err();
    assert!(nothing.get_ref().is_some_and(|error| error.is::<Unanswered>()), "{nothing:?}");
}

#[tokio::test]
async fn an_answer_too_long_for_a_datagram_comes_by_tcp() {
    let (server, _) = serve().await;
    assert_eq!(names("", "", server).look_up("pool.test").await.unwrap().len(), 200);
}

/// `resolv.conf(5)`; in Kubernetes `ndots` is 5 and a service is found by its short name.
#[tokio::test]
async fn the_search_list_is_tried_before_or_after_the_name_itself() {
    let (server, asked) = serve().await;
    let resolv_conf = "search corp.test test\nunknown line\noptions edns0 ndots:2 trust-ad\n";
    assert_eq!(names("", resolv_conf, server).look_up("api").await.unwrap(), ips(&["10.9.0.4"]));
    assert_eq!(names("", resolv_conf, server).look_up("old").await.unwrap(), ips(&["10.9.0.3"]));
    asked.lock().unwrap().clear();
    names("", resolv_conf, server).look_up("a.b.c").await.unwrap_err();
    let mut order = asked.lock().unwrap().clone();
    order.dedup();
    assert_eq!(order, ["a.b.c", "a.b.c.corp.test", "a.b.c.test"]);
    asked.lock().unwrap().clear();
    assert_eq!(names("", resolv_conf, server).look_up("api.test").await.unwrap(), ips(&["10.9.0.5"]));
    assert_eq!(asked.lock().unwrap()[0], "api.test.corp.test", "fewer dots than ndots");
    asked.lock().unwrap().clear();
    names("", resolv_conf, server).look_up("api.").await.unwrap_err();
    assert_eq!(asked.lock().unwrap().iter().filter(|name| *name != "api").count(), 0, "an absolute name");
}
