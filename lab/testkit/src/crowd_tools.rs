//! `flashweir origin` and `flashweir load`: something to protect, and a crowd.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::Flashweir;
use crate::client::Client;
use crate::deadline::until;
use crate::ports::reserve_address;
use crate::process::Process;

/// The origin calibrates its work before it listens.
const CALIBRATION_WITHIN: Duration = Duration::from_secs(20);

/// A running origin, killed when dropped.
#[derive(Debug)]
pub struct Origin {
    process: Process,
    address: SocketAddr,
    _directory: TempDir,
}

impl Origin {
    /// One worker that does `work_ms` of real work for each request.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(binary: &Flashweir, work_ms: f64) -> Self {
        Self::start_with(binary, &["--workers", "1", "--work-ms", &work_ms.to_string()])
    }

    /// One with these options of `flashweir origin`.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start_with(binary: &Flashweir, options: &[&str]) -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        let address = reserve_address();
        let listen = address.to_string();
        let arguments = ["origin", "--listen", &listen].into_iter().chain(options.iter().copied());
        let mut process = binary.start(directory.path(), arguments);
        until("the origin listening", CALIBRATION_WITHIN, || {
            assert!(process.ended().is_none(), "the origin ended at its start: {}", process.stderr());
            Client::try_connect(address).ok()
        });
        Self { process, address, _directory: directory }
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets this number of its workers work from now on.
    ///
    /// # Panics
    /// When it has fewer.
    pub fn employ(&self, workers: u32) {
        assert_eq!(self.post(&format!("/workers/{workers}")), 200, "the origin has not {workers} workers");
    }

    /// Makes this number of requests slow from now on, as after a restart.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn cool(&self, requests: u64) {
        assert_eq!(self.post(&format!("/cold/{requests}")), 200, "the origin answers");
    }

    fn post(&self, path: &str) -> u16 {
        let ask = format!("POST {path} HTTP/1.1\r\nHost: origin\r\nContent-Length: 0\r\n\r\n");
        Client::connect(self.address).ask(&ask).status()
    }

    /// As `upstream.urls` wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests a second it can really do now, from many asked one after the other by several clients at
    /// once.
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn measure_capacity(&self) -> f64 {
        const CLIENTS: usize = 4;
        const REQUESTS: usize = 75;
        // The first ones wake the processor up.
        let _ = Client::get(self.address, "/work");
        let begun = std::time::Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = Client::connect(self.address);
                    for _ in 0..REQUESTS {
                        assert_eq!(client.ask("GET /work HTTP/1.1\r\nHost: origin\r\n\r\n").status(), 200);
                    }
                });
            }
        });
        (CLIENTS * REQUESTS) as f64 / begun.elapsed().as_secs_f64()
    }
}

/// A crowd on its way.
#[derive(Debug)]
pub struct Load {
    process: Process,
    _directory: TempDir,
}

impl Load {
    /// Starts `flashweir load URL --json` with further arguments.
    #[must_use]
    pub fn start(binary: &Flashweir, url: &str, arguments: &[&str]) -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        let all = ["load", url, "--json"].into_iter().chain(arguments.iter().copied());
        Self { process: binary.start(directory.path(), all), _directory: directory }
    }

    /// Waits for its result.
    ///
    /// # Panics
    /// When it fails or does not end within `within`.
    #[must_use]
    pub fn finish(self, within: Duration) -> Value {
        let finished = self.process.finish(within);
        assert!(finished.status.success(), "the load failed: {}", finished.stderr);
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
    }
}
