//! An honest CPU-bound HTTP/1.1 server to put behind a gateway, like a forking application server.
//!
//! Each request costs a fixed amount of real processor work, done by one of a fixed number of threads, first
//! come first served; the thread may then wait a fixed time, as application servers do for their database.
//! What makes such servers collapse under a crowd is kept on purpose:
//!
//! - **Its queue has no bound.** Every connection is accepted and every request queued; only the
//!   process's limit on open files ends it. Never copy this into a product: it is the disease, not the cure.
//! - It does not notice that a client has left until it writes the answer, so it works for a client that is gone.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | `ok` at once, without work or queue |
//! | `/completed` | at once, the number of requests whose work is done, also for clients that had left by then |
//! | `/bytes/N` | the work, then N bytes |
//! | `POST /workers/N` | at once; from now on N of the threads work, the others stand still: a change of capacity |
//! | anything else | the work, then the usual number of bytes |
//!
//! `?ms=F` changes the work of one request to F milliseconds, `?wait=F` its wait.
//!
//! [`account`] reads from outside what an origin in another process does with its time; [`placement`] gives
//! it a core; [`processes`] finds all processes of an application server.

pub mod account;
mod body;
mod calibration;
pub mod placement;
pub mod processes;
mod request;
mod serve;
#[cfg(test)]
mod tests;
mod work;
mod workers;

pub use calibration::calibrate;
pub use workers::Cold;

use flashweir_core::limits::{ORIGIN_BODY_BYTES, ORIGIN_WORK_MS};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::runtime;
use tokio::sync::oneshot;

/// Settings of an origin.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Listening address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that work, one request at a time each.
    pub workers: NonZeroUsize,
    /// Processor time each request costs, milliseconds.
    pub work_ms: f64,
    /// Time that a thread is then held without working, milliseconds.
    pub wait_ms: f64,
    /// The first requests, slower than the others.
    pub cold: Cold,
    /// Size of each answer's body, bytes.
    pub body_bytes: u64,
    /// Iterations in a millisecond of work, from [`calibrate`]: two origins given the same number do the same
    /// work. `None` calibrates at start.
    pub iterations_per_ms: Option<f64>,
}

/// A running origin; shut down when dropped.
///
/// ```
/// use flashweir_testbed::origin::{Origin, Settings};
/// let settings = Settings {
///     listen: ([127, 0, 0, 1], 0).into(),
///     workers: std::num::NonZeroUsize::MIN,
///     work_ms: 1.0,
///     wait_ms: 0.0,
///     cold: flashweir_testbed::origin::Cold::default(),
///     body_bytes: 100,
///     iterations_per_ms: None,
/// };
/// let origin = Origin::start(settings)?;
/// println!("http://{}/", origin.address());
/// origin.shutdown();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    iterations_per_request: u64,
    queue: Arc<workers::Queue>,
    stop_serving: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Origin {
    /// Binds, calibrates the work unless it is given (about 100 ms) and serves on separate threads. Raises
    /// the process's limit on open files to the most it may have.
    ///
    /// # Errors
    /// A setting out of range, an address that cannot be bound, threads that cannot be started.
    pub fn start(settings: Settings) -> io::Result<Self> {
        check(&settings)?;
        raise_open_files();
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _context = runtime.enter();
            let socket = if settings.listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.bind(settings.listen)?;
            socket.listen(ACCEPT_BACKLOG)?
        };
        let address = listener.local_addr()?;
        let iterations_per_ms = settings.iterations_per_ms.unwrap_or_else(calibrate);
        let asked = request::Defaults {
            iterations_per_ms,
            work_ms: settings.work_ms,
            wait: Duration::from_secs_f64(settings.wait_ms / 1e3),
            body_bytes: settings.body_bytes,
        };
        let (stop_serving, serving_stopped) = oneshot::channel();
        let mut origin = Self {
            address,
            iterations_per_request: asked.iterations(settings.work_ms),
            queue: Arc::new(workers::Queue::new(settings.workers.get(), settings.cold)),
            stop_serving: Some(stop_serving),
            threads: Vec::new(),
        };
        for number in 0..settings.workers.get() {
            let queue = Arc::clone(&origin.queue);
            origin.spawn(format!("origin-work-{number}"), move || queue.work(number))?;
        }
        let queue = Arc::clone(&origin.queue);
        origin.spawn("origin-io".to_owned(), move || {
            runtime.block_on(serve::serve(listener, asked, queue, serving_stopped));
        })?;
        Ok(origin)
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Iterations of each request: links of a hash chain, the number that took `work_ms` at calibration.
    #[must_use]
    pub fn iterations_per_request(&self) -> u64 {
        self.iterations_per_request
    }

    /// Stops within milliseconds: open connections are cut, queued work is dropped, work under way is given
    /// up.
    pub fn shutdown(mut self) {
        self.stop();
    }

    /// A thread that fails to start leaves the others to be stopped by `Drop`.
    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(body)?);
        Ok(())
    }

    fn stop(&mut self) {
        self.queue.close();
        if let Some(stop_serving) = self.stop_serving.take() {
            // A serving thread that is gone already needs no telling.
            let _ = stop_serving.send(());
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the origin panicked; this is a bug");
            }
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Every waiting client holds an open file, and the queue is to end only where the system ends it.
fn raise_open_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }) {
        tracing::debug!(%error, "origin cannot raise its limit on open files");
    }
}

/// The kernel caps it at `net.core.somaxconn`.
const ACCEPT_BACKLOG: u32 = 65_535;

fn check(settings: &Settings) -> io::Result<()> {
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !(0.0..=ORIGIN_WORK_MS).contains(&settings.work_ms) {
        return wrong(format!("work must be 0 to {ORIGIN_WORK_MS} ms, not {}", settings.work_ms));
    }
    if !(0.0..=ORIGIN_WORK_MS).contains(&settings.wait_ms) {
        return wrong(format!("a wait must be 0 to {ORIGIN_WORK_MS} ms, not {}", settings.wait_ms));
    }
    if settings.iterations_per_ms.is_some_and(|iterations| !iterations.is_finite() || iterations <= 0.0) {
        return wrong("iterations per millisecond must be a positive number".to_owned());
    }
    if settings.body_bytes > ORIGIN_BODY_BYTES {
        return wrong(format!("a body has at most {ORIGIN_BODY_BYTES} bytes, not {}", settings.body_bytes));
    }
    Ok(())
}
