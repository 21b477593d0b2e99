//! A real HAProxy to put before the gateway.

use std::net::SocketAddr;

use tempfile::TempDir;

use crate::deadline::eventually;
use crate::ports::reserve_address;
use crate::process::Process;
use crate::programs::require_program;

/// A running HAProxy that passes on TCP, killed when dropped.
#[derive(Debug)]
pub struct Haproxy {
    _process: Process,
    _directory: TempDir,
    address: SocketAddr,
}

impl Haproxy {
    /// Starts one before `server`, or says loudly that the test is skipped. `options` come behind the
    /// server's address (`send-proxy`).
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn require(test: &str, server: SocketAddr, options: &str) -> Option<Self> {
        let program = require_program("haproxy", test)?;
        let directory = TempDir::new().expect("a fresh directory");
        let address = reserve_address();
        let config = format!(
            "global\n maxconn 100\ndefaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n \
             timeout server 60s\nlisten front\n bind {address}\n server gateway {server} {options}\n"
        );
        std::fs::write(directory.path().join("haproxy.cfg"), config).expect("a writable directory");
        let mut process = Process::start(&program, directory.path(), ["-db", "-f", "haproxy.cfg"]);
        eventually("HAProxy listening", || {
            assert!(process.ended().is_none(), "HAProxy ended at its start: {}", process.stderr());
            std::net::TcpStream::connect(address).ok()
        });
        Some(Self { _process: process, _directory: directory, address })
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
