//! Addresses of a host, and a connection to the first of them that accepts one.
//!
//! * `localhost` and the names below it are both loopback addresses, where the sources of
//!   `names` know of one only, or of none (RFC 6761 §6.3): servers that listen on
//!   `localhost` take either family.
//! * Addresses are tried by RFC 8305 §4 and §5: the families in turn, the next address when the one before has failed or 250 ms
//!   have passed. An IPv6 path that is broken costs 250 ms instead of the whole connect timeout.
//! * While the resolver fails for the moment, or is slow, the latest answer stays in use for a day (RFC 8767 §4, §5). An answer that
//!   the name does not exist ends that: its addresses may be another's by now.

use crate::names::{Names, Unanswered};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Time before the next address is tried beside the one before (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Addresses of one answer that are tried: with the delay more than most connect timeouts have time for.
const ADDRESSES_MAX: usize = 16;
/// Time that a connection waits for the resolver while an older answer is at hand. RFC 8767 §5 names 1.8 s
/// for resolvers, whose clients wait longer than ours.
const PATIENCE: Duration = Duration::from_millis(500);
/// Lifetime of a kept answer: the lower end of RFC 8767 §5.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// A host and port, with the latest answer of the resolver. Shared by all workers.
#[derive(Debug)]
pub(crate) struct Host {
    name: String,
    port: u16,
    latest: Mutex<Option<Answer>>,
    /// The resolver gave no answer the last time.
    is_failing: AtomicBool,
    /// Held by the one connection that asks the resolver while that is failing: each question may take many
    /// seconds.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct Answer {
    addresses: Arc<[SocketAddr]>,
    at: Instant,
}

impl Host {
    pub(crate) fn new(name: String, port: u16) -> Self {
        Self {
            name,
            port,
            latest: Mutex::default(),
            is_failing: AtomicBool::new(false),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns whether it is a name, whose addresses may change.
    pub(crate) fn is_name(&self) -> bool {
        self.name.parse::<IpAddr>().is_err()
    }

    /// Looks the name up and connects. The time it takes is the caller's to bound.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        connect(&self.addresses().await?).await
    }

    async fn addresses(&self) -> io::Result<Arc<[SocketAddr]>> {
        let now = Instant::now();
        let Some(latest) = self.latest(now) else {
            return self.settle(now, look_up(&self.name, self.port).await);
        };
        let asking = self.asking.try_lock();
        if asking.is_err() && self.is_failing.load(Relaxed) {
            return Ok(latest);
        }
        let found = timeout(PATIENCE, look_up(&self.name, self.port)).await;
        self.settle(now, found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
    }

    fn latest(&self, now: Instant) -> Option<Arc<[SocketAddr]>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = latest.as_ref().filter(|answer| now.saturating_duration_since(answer.at) < KEPT_FOR);
        kept.map(|answer| Arc::clone(&answer.addresses))
    }

    /// Takes what the resolver said at `now`, and returns the addresses to use.
    fn settle(&self, now: Instant, found: io::Result<Vec<SocketAddr>>) -> io::Result<Arc<[SocketAddr]>> {
        let latest = self.latest(now);
        let (answer, result) = match (found, latest) {
            (Ok(addresses), _) => {
                let addresses: Arc<[SocketAddr]> = addresses.into();
                (Some(Answer { addresses: Arc::clone(&addresses), at: now }), Ok(addresses))
            }
            (Err(error), Some(latest)) if is_temporary(&error) => {
                self.is_failing.store(true, Relaxed);
                return Ok(latest);
            }
            (Err(error), _) => (None, Err(error)),
        };
        self.is_failing.store(false, Relaxed);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        result
    }
}

/// Returns whether there was no answer, rather than the answer that there is no such name or address.
fn is_temporary(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut || error.get_ref().is_some_and(|error| error.is::<Unanswered>())
}

/// Addresses of a host by this machine's files and name servers; `localhost` is loopback in any case.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is no such name or it has no address; otherwise no name server
/// answered.
pub async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let names = Names::of_this_machine();
    if !is_localhost(host) {
        return Ok(on_port(names.look_up(host).await?, port));
    }
    // No server is asked for the name itself: where there is none, that would be a wait.
    let is_below = host.trim_end_matches('.').contains('.');
    let found = if is_below { names.look_up(host).await.unwrap_or_default() } else { names.in_hosts(host) };
    Ok(with_loopback(on_port(found, port), port))
}

fn on_port(found: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// Addresses of a host each of which is a server by itself. Those of `localhost` are one server, which may
/// listen on one of them only: the one that accepts a connection; while none does those that were `known`, or
/// all.
///
/// # Errors
/// Errors of the resolver.
pub async fn look_up_servers(host: &str, port: u16, known: &[SocketAddr]) -> io::Result<Vec<SocketAddr>> {
    let found = look_up(host, port).await?;
    if !is_localhost(host) || found.len() < 2 {
        return Ok(found);
    }
    let accepting = connect(&found).await.and_then(|stream| stream.peer_addr());
    Ok(match accepting {
        Ok(address) => vec![address],
        Err(_) if known.is_empty() => found,
        Err(_) => known.to_vec(),
    })
}

/// Connects to the first of the addresses that accepts.
///
/// # Errors
/// The error of the last address that failed, of a refused connection where there was one.
pub async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [address] = addresses {
        return TcpStream::connect(address).await;
    }
    let mut rest = families_in_turn(addresses).into_iter().take(ADDRESSES_MAX);
    // Dropping it ends the attempts that are left.
    let mut attempts = JoinSet::new();
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        let next = rest.next();
        let is_last = next.is_none();
        attempts.extend(next.map(TcpStream::connect));
        let ended = if is_last {
            attempts.join_next().await
        } else {
            // None has ended within the delay: the next address is tried beside them.
            let Ok(ended) = timeout(ATTEMPT_DELAY, attempts.join_next()).await else { continue };
            ended
        };
        match ended {
            Some(Ok(Ok(stream))) => return Ok(stream),
            // A refusal says more than another address that cannot be reached from here: a server may listen
            // again.
            Some(Ok(Err(_))) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Some(Ok(Err(failed))) => error = failed,
            Some(Err(failed)) => error = io::Error::other(failed),
            None => return Err(error),
        }
    }
}

/// RFC 6761 §6.3.
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Adds the loopback addresses that the resolver left out. A name below `localhost` to which it gives another
/// address, as container networks do, keeps that alone.
fn with_loopback(mut found: Vec<SocketAddr>, port: u16) -> Vec<SocketAddr> {
    if found.iter().all(|address| address.ip().is_loopback()) {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let is_there = found.iter().any(|address| address.is_ipv4() == ip.is_ipv4());
            found.extend((!is_there).then_some(SocketAddr::new(ip, port)));
        }
    }
    found
}

/// The addresses in their order, but for the families, which alternate (RFC 8305 §4).
fn families_in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let begins_with_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == begins_with_ipv6);
    let (mut first, mut second) = (first.drain(..), second.drain(..));
    let mut ordered = Vec::with_capacity(addresses.len());
    loop {
        let before = ordered.len();
        ordered.extend(first.next());
        ordered.extend(second.next());
        if ordered.len() == before {
            return ordered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|address| address.parse().unwrap()).collect()
    }

    /// RFC 6761 §6.3, and vercel-labs/portless#353: servers that listen on `localhost` may have `::1` alone,
    /// and `/etc/hosts` may have `127.0.0.1` alone.
    #[tokio::test]
    async fn localhost_is_both_loopback_addresses() {
        for name in ["localhost", "LocalHost.", "app.localhost"] {
            let found = look_up(name, 80).await.unwrap();
            for address in addresses(&["127.0.0.1:80", "[::1]:80"]) {
                assert!(found.contains(&address), "{name}: {found:?}");
            }
        }
        assert!(!is_localhost("localhost.example") && !is_localhost("mylocalhost"));
        let container = addresses(&["172.18.0.3:80"]);
        assert_eq!(with_loopback(container.clone(), 80), container, "a container network's own name");
    }

    #[tokio::test]
    async fn a_server_that_listens_on_one_loopback_address_is_reached_as_localhost() {
        for ip in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(ip).await else {
                eprintln!("skipped: this machine has no {ip}");
                continue;
            };
            let host = Host::new("localhost".to_owned(), listener.local_addr().unwrap().port());
            host.connect().await.unwrap();
            let address = listener.local_addr().unwrap();
            let servers = async |known: &[SocketAddr]| {
                look_up_servers("localhost", address.port(), known).await.unwrap()
            };
            assert_eq!(servers(&[]).await, [address]);
            drop(listener);
            assert_eq!(servers(&[]).await.len(), 2);
            assert_eq!(servers(&[address]).await, [address], "it restarts");
        }
    }

    /// RFC 8305 §5, and tinyproxy/tinyproxy#392: an address that is silent costs the delay, not the connect
    /// timeout. A backlog that is full is silent.
    #[tokio::test]
    async fn a_silent_address_does_not_keep_the_next_one_waiting() {
        let silent = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        silent.bind(&addresses(&["127.0.0.1:0"])[0].into()).unwrap();
        silent.listen(0).unwrap();
        let silent_address = silent.local_addr().unwrap().as_socket().unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(silent_address)).await {
            waiting.push(stream.unwrap());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let second = listener.local_addr().unwrap();
        let connected = timeout(Duration::from_secs(10), connect(&[silent_address, second])).await;
        assert_eq!(
            connected.expect("far sooner than the silent address would fail").unwrap().peer_addr().unwrap(),
            second
        );
    }

    #[test]
    fn families_alternate_and_keep_their_order() {
        let given = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "127.0.0.1:1", "127.0.0.2:1"]);
        let tried = addresses(&["[::1]:1", "127.0.0.1:1", "[::2]:1", "127.0.0.2:1", "[::3]:1"]);
        assert_eq!(families_in_turn(&given), tried);
        assert_eq!(families_in_turn(&[]), []);
    }

    /// RFC 8767 §4, and apache/apisix#13903: a resolver that fails does not take the servers away; one that
    /// says that the name is gone does.
    #[test]
    fn the_latest_answer_stays_in_use_while_the_resolver_fails() {
        let host = Host::new("app.test".to_owned(), 80);
        let fails = || Err(io::Error::other(Unanswered));
        let begin = Instant::now();
        assert!(host.settle(begin, fails()).is_err(), "there is no answer yet");
        let answer = addresses(&["10.9.0.1:80"]);
        assert_eq!(*host.settle(begin, Ok(answer.clone())).unwrap(), answer);
        assert_eq!(*host.settle(begin + KEPT_FOR / 2, fails()).unwrap(), answer);
        assert_eq!(*host.settle(begin, Err(io::ErrorKind::TimedOut.into())).unwrap(), answer);
        assert!(host.settle(begin + KEPT_FOR, fails()).is_err(), "a day old");
        host.settle(begin, Ok(answer)).unwrap();
        assert!(host.settle(begin, Err(io::ErrorKind::NotFound.into())).is_err());
        assert!(host.settle(begin, fails()).is_err(), "the name was gone");
    }
}
