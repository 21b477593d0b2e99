//! One connection before the run, to tell at once when nobody listens rather than after the run.

use crate::{LoadError, Target};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long the target may take to accept it.
const REACHABLE_WITHIN: Duration = Duration::from_secs(3);

/// Connects to the target from `source` and closes the connection again, blocking. TLS is not spoken: a handshake
/// that fails is told of each person.
///
/// # Errors
/// [`LoadError::Unreachable`].
pub(crate) fn reach(target: &Target, source: Option<IpAddr>) -> Result<(), LoadError> {
    connect(target.address, source)
        .map_err(|source| LoadError::Unreachable { address: target.address, source })
}

fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), None)?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.connect_timeout(&address.into(), REACHABLE_WITHIN)
}
