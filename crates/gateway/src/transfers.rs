//! Long transfers report before they end: a crowd that makes downloads crawl must not stay unseen until they finish.
//!
//! Once a second each transfer older than that tells how many bytes the client acknowledged within the second. A
//! second in which the client had acknowledged everything there was (the origin is slow, or streams by design) says
//! nothing of the network and is left out; so is a body that once had a gap. Only HTTP/1.1 responses take part: the
//! streams of an HTTP/2 connection share one count of acknowledged bytes.

use crate::tracked::Wire;
use flashweir_admission::flash_crowd::Response;
use flashweir_core::{Duration, Instant, limits};
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// Time between two reports of one transfer; shorter ones report only their end.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A transfer in progress, owned by its response's body: dropping it ends the reports.
#[derive(Debug)]
pub(crate) struct Transfer {
    started: Instant,
    url_class: u32,
    wire: Rc<Wire>,
    /// Bytes acknowledged on the connection before this response began.
    base_bytes: u64,
    reported_bytes: Cell<u64>,
    reported_at: Cell<Instant>,
}

impl Transfer {
    /// A response whose first byte goes out now; `wire` must carry nothing else until its end.
    pub(crate) fn begin(now: Instant, started: Instant, url_class: u32, wire: Rc<Wire>) -> Rc<Self> {
        let base_bytes = wire.bytes_written();
        Rc::new(Self {
            started,
            url_class,
            wire,
            base_bytes,
            reported_bytes: Cell::new(base_bytes),
            reported_at: Cell::new(now),
        })
    }

    /// The last second's progress on plain numbers: bytes the client has acknowledged on the connection, and bytes
    /// written to it. `None` when the client was not what held the transfer up.
    fn report(&self, now: Instant, acknowledged: u64, written: u64, segment_bytes: u64) -> Option<Response> {
        let before = self.reported_bytes.replace(acknowledged.max(self.base_bytes));
        let elapsed = now.saturating_since(self.reported_at.replace(now));
        if acknowledged + 2 * segment_bytes >= written {
            return None;
        }
        Some(Response {
            started: self.started,
            bytes: acknowledged.saturating_sub(self.base_bytes),
            latency_s: now.saturating_since(self.started).as_secs_f32(),
            rate_bytes_per_s: Some(
                (acknowledged.saturating_sub(before) as f64 / elapsed.as_secs_f64()) as f32,
            ),
            url_class: self.url_class,
        })
    }
}

/// The transfers of one worker, bounded like the responses that await acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Transfers(Vec<Weak<Transfer>>);

impl Transfers {
    /// No transfer under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Watches a transfer until its owner drops it; one beyond the bound only reports its end.
    pub(crate) fn watch(&mut self, transfer: &Rc<Transfer>) {
        if self.0.len() < limits::ACKS_AWAITED {
            self.0.push(Rc::downgrade(transfer));
        }
    }

    /// Reports what is due. One system call for each transfer and second.
    pub(crate) fn sweep(&mut self, now: Instant, mut progressed: impl FnMut(Response)) {
        self.0.retain(|transfer| {
            let Some(transfer) = transfer.upgrade() else { return false };
            if now.saturating_since(transfer.reported_at.get()) < REPORT_INTERVAL {
                return true;
            }
            let Ok(info) = transfer.wire.tcp_info() else { return false };
            let written = transfer.wire.bytes_written();
            let acknowledged = info.bytes_acked.unwrap_or(written);
            if let Some(response) = transfer.report(now, acknowledged, written, info.sending_mss_bytes.into())
            {
                progressed(response);
            }
            !info.closed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use tokio::net::{TcpListener, TcpStream};

    async fn transfer() -> Rc<Transfer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let _client = TcpStream::connect(listener.local_addr().expect("address")).await.expect("connect");
        let (server, _) = listener.accept().await.expect("accept");
        Transfer::begin(Instant::from_secs(10), Instant::from_secs(9), 3, Wire::new(server, Clock::start()))
    }

    #[tokio::test]
    async fn each_report_is_the_rate_of_its_own_second() {
        let transfer = transfer().await;
        let first = transfer.report(Instant::from_secs(11), 50_000, 400_000, 1_448).expect("report");
        assert_eq!((first.rate_bytes_per_s, first.bytes, first.latency_s), (Some(50_000.0), 50_000, 2.0));
        let second = transfer.report(Instant::from_secs(13), 70_000, 400_000, 1_448).expect("report");
        assert_eq!((second.rate_bytes_per_s, second.bytes, second.latency_s), (Some(10_000.0), 70_000, 4.0));
    }

    #[tokio::test]
    async fn a_second_in_which_the_origin_held_back_is_left_out() {
        let transfer = transfer().await;
        assert_eq!(transfer.report(Instant::from_secs(11), 50_000, 50_000, 1_448), None);
        // The next second starts from what was acknowledged by then.
        let next = transfer.report(Instant::from_secs(12), 60_000, 400_000, 1_448).expect("report");
        assert_eq!(next.rate_bytes_per_s, Some(10_000.0));
    }

    #[tokio::test]
    async fn a_transfer_that_ended_is_forgotten_at_the_next_sweep() {
        let (mut transfers, transfer) = (Transfers::default(), transfer().await);
        transfers.watch(&transfer);
        transfers.sweep(Instant::from_secs(10), |_| panic!("not due"));
        assert!(!transfers.is_empty());
        drop(transfer);
        transfers.sweep(Instant::from_secs(10), |_| panic!("ended"));
        assert!(transfers.is_empty());
    }
}
