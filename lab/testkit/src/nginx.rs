//! A real nginx to put behind the gateway.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::certificates::CertificateFiles;
use crate::deadline::eventually;
use crate::ports::reserve_address;
use crate::process::{Process, Signal};
use crate::programs::require_program;

/// A running nginx, killed when dropped. It serves the files of its directory.
#[derive(Debug)]
pub struct Nginx {
    program: PathBuf,
    process: Process,
    directory: TempDir,
    address: SocketAddr,
}

/// A rate limit (`limit_req`) that is set by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Requests a second that pass; nginx takes whole numbers a minute.
    pub rate_rps: f64,
    /// Requests that pass at once after a pause.
    pub burst: u32,
}

impl Nginx {
    /// Starts one, or says loudly that the test is skipped. `listen` comes behind the port in nginx's
    /// `listen` line (`http2`, `ssl http2`); `server` is put into its `server` block.
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn require(test: &str, listen: &str, server: &str) -> Option<Self> {
        Self::start(test, listen, "", server)
    }

    /// Starts one that listens at `address` too, and passes what a limit admits to the server at `upstream`;
    /// the rest gets 503.
    ///
    /// # Panics
    /// When nginx is there and does not start.
    #[must_use]
    pub fn require_limited(
        test: &str,
        address: SocketAddr,
        limit: RateLimit,
        upstream: SocketAddr,
    ) -> Option<Self> {
        let RateLimit { rate_rps, burst } = limit;
        let rate = (rate_rps * 60.0).round().max(1.0);
        let limits = format!(
            "limit_req_zone all zone=all:1m rate={rate}r/m; upstream origin {{ server {upstream}; keepalive 64; }}"
        );
        let burst = if burst == 0 { String::new() } else { format!("burst={burst} nodelay") };
        let server = format!(
            "listen {address}; location / {{ limit_req zone=all {burst}; proxy_pass http://origin;\n\
             proxy_http_version 1.1; proxy_set_header Connection ''; }}"
        );
        Self::start(test, "", &limits, &server)
    }

    fn start(test: &str, listen: &str, http: &str, server: &str) -> Option<Self> {
        let program = require_program("nginx", test)?;
        let directory = TempDir::new().expect("a fresh directory");
        let address = reserve_address();
        let root = directory.path();
        // nginx started by root would give its files to another user; one process with no master stays one
        // user.
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/errors;\n\
             events {{ worker_connections 16384; }}\n\
             http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;\n\
             fastcgi_temp_path {root}/fastcgi; uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;\n{http}\n\
             server {{ listen {address} {listen}; root {root}/files;\n{server}\n}} }}\n",
            root = root.display()
        );
        std::fs::create_dir(root.join("files")).expect("a writable directory");
        std::fs::write(root.join("nginx.conf"), config).expect("a writable directory");
        let process = Self::run(&program, root, address);
        Some(Self { program, process, directory, address })
    }

    fn run(program: &Path, root: &Path, address: SocketAddr) -> Process {
        let arguments = ["-p".as_ref(), root.as_os_str(), "-c".as_ref(), "nginx.conf".as_ref()];
        let mut process = Process::start(program, root, arguments);
        eventually("nginx listening", || {
            assert!(process.ended().is_none(), "nginx ended at its start: {}", process.stderr());
            std::net::TcpStream::connect(address).ok()
        });
        process
    }

    /// Ends it as a crash would, if it still runs, and starts it at the same address.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        self.process.try_signal(Signal::Kill);
        eventually("the end of nginx", || self.process.ended());
        self.process = Self::run(&self.program, self.directory.path(), self.address);
    }

    /// As [`Nginx::require`], with TLS.
    #[must_use]
    pub fn require_tls(test: &str, listen: &str, files: &CertificateFiles, server: &str) -> Option<Self> {
        let tls = format!(
            "ssl_certificate {}; ssl_certificate_key {};\n{server}",
            files.certificate.display(),
            files.key.display()
        );
        Self::require(test, &format!("ssl {listen}"), &tls)
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The directory it serves.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    /// Puts a file where it is served.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn serve(&self, name: impl AsRef<Path>, content: &[u8]) {
        std::fs::write(self.files().join(name), content).expect("a writable directory");
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}
