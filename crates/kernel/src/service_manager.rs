//! Protocol of service managers: listening sockets that a process inherits (`sd_listen_fds(3)`), and
//! messages to the manager (`sd_notify(3)`). systemd speaks it, and others do for its sake.

use sd_notify::NotifyState;
use std::io;
use std::mem::size_of;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the listening sockets that the service manager opened for this process, in its order; none
/// without one, and none at a second call. Processes that this one starts do not inherit them.
///
/// # Errors
/// A message that names the descriptor which is no listening TCP socket; malformed variables (`LISTEN_FDS`).
pub fn inherited_listeners() -> io::Result<Vec<TcpListener>> {
    if TAKEN.swap(true, Relaxed) {
        return Ok(Vec::new());
    }
    // Owned before any is judged: none of them leaks when one is wrong.
    let owned = sd_notify::listen_fds()?.map(|descriptor| {
        // SAFETY: the manager opened the descriptor for this process alone (`LISTEN_PID` is its id, and
        // the call before failed if it were not open), nothing else here knows its number, and `TAKEN`
        // lets it be taken once.
        unsafe { OwnedFd::from_raw_fd(descriptor) }
    });
    let owned: Vec<_> = owned.collect();
    owned.into_iter().map(into_listener).collect()
}

fn into_listener(socket: OwnedFd) -> io::Result<TcpListener> {
    let descriptor = socket.as_raw_fd();
    let wrong = |error: io::Error| {
        let what =
            format!("descriptor {descriptor} of the service manager is no listening TCP socket: {error}");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    };
    if option(descriptor, libc::SO_ACCEPTCONN).map_err(wrong)? == 0 {
        return Err(wrong(io::Error::other("it does not listen")));
    }
    let listener = TcpListener::from(socket);
    // An error for sockets of other families.
    listener.local_addr().map_err(wrong)?;
    Ok(listener)
}

/// Value of an integer option of the socket.
fn option(descriptor: RawFd, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are to variables that outlive the call, and `size` is that of the first, so
    // the kernel writes nothing beyond it.
    let status = unsafe {
        libc::getsockopt(descriptor, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut size)
    };
    if status == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Reports to the service manager that this process serves; does nothing without one.
///
/// # Errors
/// Errors of the manager's socket.
pub fn notify_ready() -> io::Result<()> {
    sd_notify::notify(&[NotifyState::Ready])
}

/// Reports to the service manager that this process finishes its requests and ends.
///
/// # Errors
/// Errors of the manager's socket.
pub fn notify_stopping() -> io::Result<()> {
    sd_notify::notify(&[NotifyState::Stopping])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpStream, UdpSocket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_listening_tcp_socket_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let connected = TcpStream::connect(address).expect("connect");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let directory = tempfile::tempdir().expect("directory");
        let local = UnixListener::bind(directory.path().join("socket")).expect("bind");
        for wrong in [OwnedFd::from(connected), OwnedFd::from(datagrams), OwnedFd::from(local)] {
            let error = into_listener(wrong).expect_err("no listening TCP socket").to_string();
            assert!(error.contains("is no listening TCP socket: "), "{error}");
        }
        let taken = into_listener(OwnedFd::from(listener)).expect("a listening socket");
        assert_eq!(taken.local_addr().expect("address"), address);
    }

    #[test]
    fn nothing_is_inherited_without_a_service_manager() {
        assert!(inherited_listeners().expect("no variables").is_empty());
    }
}
