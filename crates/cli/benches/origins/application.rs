//! An application server on core 0: its processes, its address, and the file with a byte for each completed
//! request.

use crate::machine;
use flashweir_testbed::origin::account::OriginMeter;
use flashweir_testbed::origin::processes::with_descendants;
use flashweir_testkit::{Client, Php, Process, Signal, until};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Servers of many processes start in a second or two; on a busy machine they take longer.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// One with a backlog of pages for clients that have left sees the signal after them.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(3);
/// A closed loop on a busy machine may complete too few to tell; once more, for longer.
const MEASURED_AGAIN: u32 = 2;
/// The name of the file of marks in an application's directory.
const MARKS: &str = "marks";

/// One that runs; ended when dropped.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    /// Requests in flight that keep all of it busy.
    concurrency: usize,
    roots: Vec<u32>,
    marks: PathBuf,
    // Dropped in this order: those that ask end before those that answer.
    _servers: Vec<Server>,
    _php: Option<Php>,
    _directory: Directory,
}

/// Shared part of its servers: a directory for the sources and the marks.
pub(crate) struct Directory(TempDir);

impl Directory {
    pub(crate) fn new() -> Self {
        let directory = Self(TempDir::new().expect("a fresh directory"));
        fs::write(directory.marks(), "").expect("a writable directory");
        directory
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn marks(&self) -> PathBuf {
        self.path().join(MARKS)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("a writable directory");
    }
}

/// A server that ends its own workers when it is interrupted; killed, it would leave them behind.
pub(crate) struct Server(Process);

impl Server {
    pub(crate) fn start(program: &Path, directory: &Directory, arguments: &[&str]) -> Self {
        Self(Process::start(program, directory.path(), arguments))
    }

    /// Waits until it does something, and fails with what it said if it ends before.
    pub(crate) fn wait<T>(&mut self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        until(what, STARTS_WITHIN, || {
            assert!(self.0.ended().is_none(), "{what}: it ended at its start: {}", self.0.stderr());
            look()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.0.ended().is_none() {
            self.0.try_signal(Signal::Interrupt);
        }
        // Killed after that, and not a failure: something else may have failed already.
        let deadline = Instant::now() + ENDS_WITHIN;
        while self.0.ended().is_none() && Instant::now() < deadline {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}

impl Application {
    /// Waits until the last of `servers` answers at `address`, and gives all of them core 0.
    pub(crate) fn of_servers(
        address: SocketAddr,
        concurrency: usize,
        directory: Directory,
        mut servers: Vec<Server>,
    ) -> Self {
        for server in &mut servers {
            server.wait("the application's port", || Client::try_connect(address).ok());
        }
        let roots = servers.iter().map(|server| server.0.id()).collect();
        Self::new(address, concurrency, roots, directory, servers, None)
    }

    /// PHP-FPM, and the `servers` that its pages ask.
    pub(crate) fn of_php(php: Php, concurrency: usize, directory: Directory, servers: Vec<Server>) -> Self {
        let beside = servers.iter().map(|server| server.0.id());
        let roots = php.processes().into_iter().chain(beside).collect();
        Self::new(php.address(), concurrency, roots, directory, servers, Some(php))
    }

    fn new(
        address: SocketAddr,
        concurrency: usize,
        roots: Vec<u32>,
        directory: Directory,
        servers: Vec<Server>,
        php: Option<Php>,
    ) -> Self {
        // The parents first: a worker that is started meanwhile takes after its parent.
        roots.iter().copied().for_each(machine::give_core_0);
        let marks = directory.marks();
        let application =
            Self { address, concurrency, roots, marks, _servers: servers, _php: php, _directory: directory };
        application.processes().into_iter().for_each(machine::give_core_0);
        application
    }

    /// Requests for `path` (without the slash before it) that it completes in a closed loop, a second.
    pub(crate) fn capacity_rps(&self, path: &str) -> Result<f64, String> {
        let url = format!("http://{}/{path}", self.address);
        let measure = |time| flashweir_load::measure_capacity(&url, self.concurrency, time);
        let measured =
            measure(CAPACITY_MEASURED_FOR).or_else(|_| measure(CAPACITY_MEASURED_FOR * MEASURED_AGAIN));
        measured.map_err(|error| error.to_string())
    }

    /// Its processes now: those that were started here, and after them those that they started.
    pub(crate) fn processes(&self) -> Vec<u32> {
        with_descendants(&self.roots)
    }

    pub(crate) fn meter(&self) -> OriginMeter {
        OriginMeter::of_trees(self.roots.clone(), self.marks.clone())
    }
}
