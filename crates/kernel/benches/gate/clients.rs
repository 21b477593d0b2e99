//! Clients with sockets: each connects, asks, and reads to the end, one connection after the other.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashweir_testkit::PATIENCE;

use crate::arena::pin;

pub(crate) const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";

/// Number of clients at once, all on the second processor.
#[derive(Clone, Copy)]
pub(crate) struct Clients {
    pub(crate) count: u32,
    /// New connections a second, of all together; `None`: as fast as they are answered.
    pub(crate) rate_per_s: Option<u32>,
}

/// Outcomes of attempts, each of which is exactly one of these.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// A whole response, to the end of the connection.
    pub(crate) answered: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) reset: AtomicU64,
    pub(crate) timed_out: AtomicU64,
    pub(crate) otherwise: AtomicU64,
}

impl Clients {
    /// Makes attempts for the time `during`, or until `times` are made, the earlier of both.
    pub(crate) fn ask(self, server: SocketAddr, during: Duration, times: u64) -> Outcomes {
        let outcomes = Outcomes::default();
        let attempts = AtomicU64::new(0);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..self.count {
                scope.spawn(|| {
                    pin(0, 1);
                    while begin.elapsed() < during {
                        let number = attempts.fetch_add(1, Ordering::Relaxed);
                        if number >= times || !self.wait(begin, number, during) {
                            return;
                        }
                        outcomes.count(attempt(server));
                    }
                });
            }
        });
        outcomes
    }

    /// Waits for an attempt's turn; false if that is too late.
    fn wait(self, begin: Instant, number: u64, during: Duration) -> bool {
        let Some(rate_per_s) = self.rate_per_s else { return true };
        let due = Duration::from_nanos(number * 1_000_000_000 / u64::from(rate_per_s));
        while let Some(wait) = due.checked_sub(begin.elapsed()).filter(|wait| !wait.is_zero()) {
            std::thread::park_timeout(wait);
        }
        due < during
    }
}

impl Outcomes {
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub(crate) fn sum(&self) -> u64 {
        let all = [&self.answered, &self.refused, &self.reset, &self.timed_out, &self.otherwise];
        all.into_iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn count(&self, outcome: std::io::Result<bool>) {
        let counter = match outcome.map_err(|error| error.kind()) {
            Ok(true) => &self.answered,
            Err(ErrorKind::ConnectionRefused) => &self.refused,
            Err(ErrorKind::ConnectionReset) => &self.reset,
            Err(ErrorKind::TimedOut | ErrorKind::WouldBlock) => &self.timed_out,
            Ok(false) | Err(_) => &self.otherwise,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns whether the whole of a refusal came.
fn attempt(server: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(GET)?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let is_whole = response.windows(4).any(|end| end == b"\r\n\r\n");
    Ok(is_whole && response.starts_with(b"HTTP/1.1 503 "))
}
