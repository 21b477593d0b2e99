//! Long transfers report before they end: a crowd that makes downloads crawl must not stay unseen until they
//! finish.
//!
//! Each transfer has a time sliding window, as NEWS gives each flow, fed ten times a second with what the
//! client has acknowledged; once a second its rate is a measurement. A stretch at whose end the client had
//! acknowledged everything there was (the origin is slow, or streams by design) says nothing of the network:
//! nothing is reported, and a body that once had a gap is left out altogether. Only HTTP/1.1 responses take
//! part: the streams of an HTTP/2 connection share one count of acknowledged bytes.

use crate::tracked::Wire;
use flashweir_admission::flash_crowd::Response;
use flashweir_core::measure::{FirstWindow, TimeSlidingWindow};
use flashweir_core::{Duration, Instant, limits};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Time between two reports of one transfer; shorter ones report only their end.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks at one transfer: fine enough for the window's one second, coarse enough to be
/// cheap.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// No look comes sooner, so the first window needs no larger divisor.
const FIRST_WINDOW: FirstWindow = FirstWindow::Corrected { floor: LOOK_INTERVAL };

/// A transfer in progress, owned by its response's body: dropping it ends the reports.
#[derive(Debug)]
pub(crate) struct Transfer {
    started: Instant,
    /// Beginning of the judged part of its time.
    judged_from: Instant,
    url_class: u32,
    wire: Rc<Wire>,
    /// Bytes acknowledged on the connection before this response began.
    base_bytes: u64,
    acknowledged_bytes: Cell<u64>,
    rate: RefCell<TimeSlidingWindow>,
    looked_at: Cell<Instant>,
    reported_at: Cell<Instant>,
}

impl Transfer {
    /// A response whose first byte goes out now; `wire` must carry nothing else until its end.
    pub(crate) fn begin(
        now: Instant,
        (started, judged_from): (Instant, Instant),
        url_class: u32,
        wire: Rc<Wire>,
    ) -> Rc<Self> {
        let base_bytes = wire.bytes_written();
        Rc::new(Self {
            started,
            judged_from,
            url_class,
            wire,
            base_bytes,
            acknowledged_bytes: Cell::new(base_bytes),
            rate: RefCell::new(TimeSlidingWindow::new(now, FIRST_WINDOW)),
            looked_at: Cell::new(now),
            reported_at: Cell::new(now),
        })
    }

    /// One look on plain numbers: bytes the client has acknowledged on the connection, and bytes written to
    /// it. Gives a measurement once a second, unless the client was not what held the transfer up.
    fn look(&self, now: Instant, acknowledged: u64, written: u64, segment_bytes: u64) -> Option<Response> {
        let acknowledged = acknowledged.max(self.base_bytes);
        let before = self.acknowledged_bytes.replace(acknowledged);
        self.rate.borrow_mut().observe(now, acknowledged.saturating_sub(before));
        self.looked_at.set(now);
        if now.saturating_since(self.reported_at.get()) < REPORT_INTERVAL {
            return None;
        }
        self.reported_at.set(now);
        if acknowledged + 2 * segment_bytes >= written {
            return None;
        }
        Some(Response {
            started: self.started,
            bytes: acknowledged - self.base_bytes,
            latency_s: now.saturating_since(self.judged_from).as_secs_f32(),
            rate_bytes_per_s: Some(self.rate.borrow().rate(now) as f32),
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

    /// Looks at what is due. Ten system calls for each transfer and second.
    pub(crate) fn sweep(&mut self, now: Instant, mut progressed: impl FnMut(Response)) {
        self.0.retain(|transfer| {
            let Some(transfer) = transfer.upgrade() else { return false };
            if now.saturating_since(transfer.looked_at.get()) < LOOK_INTERVAL {
                return true;
            }
            let Ok(info) = transfer.wire.tcp_info() else { return false };
            let written = transfer.wire.bytes_written();
            let acknowledged = info.bytes_acked.unwrap_or(written);
            transfer
                .look(now, acknowledged, written, info.sending_mss_bytes.into())
                .into_iter()
                .for_each(&mut progressed);
            !info.closed
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_runtime::Clock;
    use tokio::net::{TcpListener, TcpStream};

    async fn transfer() -> Rc<Transfer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let _client = TcpStream::connect(listener.local_addr().expect("address")).await.expect("connect");
        let (server, _) = listener.accept().await.expect("accept");
        let started = Instant::from_secs(9);
        Transfer::begin(Instant::from_secs(10), (started, started), 3, Wire::new(server, Clock::start()))
    }

    /// Looks every 100 ms for `seconds`, `bytes_per_look` acknowledged at each; gives the reports.
    fn follow(transfer: &Transfer, seconds: u64, bytes_per_look: u64, written: u64) -> Vec<Response> {
        let (start_ms, start_bytes) =
            (transfer.looked_at.get().as_nanos() / 1_000_000, transfer.acknowledged_bytes.get());
        (1..=10 * seconds)
            .filter_map(|n| {
                let now = Instant::from_millis(start_ms + 100 * n);
                transfer.look(now, start_bytes + n * bytes_per_look, written, 1_448)
            })
            .collect()
    }

    #[tokio::test]
    async fn a_report_a_second_follows_the_rate() {
        let transfer = transfer().await;
        let steady = follow(&transfer, 3, 5_000, 10_000_000);
        assert_eq!(steady.len(), 3);
        assert_eq!(steady[0].latency_s, 2.0);
        assert!(steady.iter().all(|report| (report.rate_bytes_per_s.unwrap() / 50_000.0 - 1.0).abs() < 0.05));
        // A fifth of the speed: the window has followed to within a few percent after three seconds.
        let slower = follow(&transfer, 4, 1_000, 10_000_000);
        let rates: Vec<f32> = slower.iter().filter_map(|report| report.rate_bytes_per_s).collect();
        assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
        assert!((rates[3] / 10_000.0 - 1.0).abs() < 0.1, "{rates:?}");
    }

    #[tokio::test]
    async fn a_second_in_which_the_origin_held_back_is_left_out() {
        let transfer = transfer().await;
        assert_eq!(follow(&transfer, 1, 5_000, 50_000), []);
        assert_eq!(follow(&transfer, 1, 5_000, 400_000).len(), 1);
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
