//! One connection to each of the target's addresses before the run, to report at once when no server listens
//! rather than after the run.

use super::dial::bind_to;
use crate::{LoadError, LoadTarget};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

/// Time within which the target has to accept it.
const REACHABLE_WITHIN: Duration = Duration::from_secs(3);

/// The addresses of the target that accept a connection from `source`; at least one. Each is connected to,
/// all at the same time, and the connections closed again; blocks. TLS is not spoken: a handshake that fails
/// is reported for each person.
///
/// An address without a listener is left out: names often stand for one address of each kind (`localhost`
/// does), and a client of such a name goes on to the next.
///
/// # Errors
/// [`LoadError::Unreachable`].
pub(crate) fn reachable(target: &LoadTarget, source: Option<IpAddr>) -> Result<Vec<SocketAddr>, LoadError> {
    let addresses = &target.addresses;
    // At most LOAD_TARGET_ADDRESSES threads.
    let attempts: Vec<io::Result<()>> = thread::scope(|scope| {
        let attempt = |address: &SocketAddr| {
            let address = *address;
            scope.spawn(move || connect(address, source))
        };
        let attempts: Vec<_> = addresses.iter().map(attempt).collect();
        attempts
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    let mut reached = Vec::new();
    let mut first_failure = None;
    for (&address, attempt) in addresses.iter().zip(attempts) {
        match attempt {
            Ok(()) => reached.push(address),
            Err(source) => _ = first_failure.get_or_insert(LoadError::Unreachable { address, source }),
        }
    }
    match first_failure {
        Some(failure) if reached.is_empty() => Err(failure),
        _ => Ok(reached),
    }
}

fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), None)?;
    bind_to(&socket, source)?;
    socket.connect_timeout(&address.into(), REACHABLE_WITHIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn addresses_at_which_nobody_listens_are_left_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let (closed, closed_too) = (
            SocketAddr::new([127, 0, 0, 2].into(), open.port()),
            SocketAddr::new([127, 0, 0, 3].into(), open.port()),
        );
        let target = LoadTarget::parse(&format!("http://{open}/")).unwrap();
        let reached = |addresses: &[SocketAddr]| {
            reachable(&LoadTarget { addresses: addresses.to_vec(), ..target.clone() }, None)
        };
        assert_eq!(reached(&[closed, open, closed_too]).unwrap(), [open]);
        let unreachable = reached(&[closed, closed_too]).unwrap_err();
        assert!(
            matches!(unreachable, LoadError::Unreachable { address, .. } if address == closed),
            "{unreachable}"
        );
    }
}
