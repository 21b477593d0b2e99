//! Asks for the gateway's status again and again while something happens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

/// A thread that asks; it lives in the network namespace of the thread that starts it.
#[derive(Debug)]
pub struct StatusWatch<T> {
    stop: Arc<AtomicBool>,
    watcher: JoinHandle<Vec<(Instant, T)>>,
}

impl<T: Send + 'static> StatusWatch<T> {
    /// Asks the admin listener for `/status` about `every` so often, and keeps what `read` makes of it.
    ///
    /// # Panics
    /// In [`stop`](Self::stop), when the gateway does not answer.
    pub fn start(admin: SocketAddr, every: Duration, read: impl Fn(&Value) -> T + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watcher = std::thread::spawn(move || {
            let mut client = Client::connect(admin);
            let mut seen = Vec::new();
            while !stopped.load(Ordering::SeqCst) {
                let status = client.ask("GET /status HTTP/1.1\r\nHost: admin\r\n\r\n").json();
                seen.push((Instant::now(), read(&status)));
                std::thread::park_timeout(every);
            }
            seen
        });
        Self { stop, watcher }
    }

    /// Everything that was read, in its order.
    ///
    /// # Panics
    /// When the gateway did not answer to the end.
    #[must_use]
    pub fn stop(self) -> Vec<(Instant, T)> {
        self.stop.store(true, Ordering::SeqCst);
        self.watcher.thread().unpark();
        self.watcher.join().expect("a gateway that answers to the end")
    }
}
