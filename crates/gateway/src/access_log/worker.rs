//! One worker's part of the access log: its lines until they are handed over, and how many refused requests
//! of this second have one.

use super::date::Second;
use super::file::AccessLines;
use super::line::{self, Record};
use flashweir_config::{AccessLog, AccessLogFormat};
use flashweir_core::Duration;
use flashweir_core::limits::ACCESS_LOG_BYTES;
use flashweir_runtime::Clock;
use flashweir_telemetry::{AccessLineOutcome, WorkerMetrics};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// Time for which lines are gathered.
const HANDED_OVER_EVERY: Duration = Duration::from_millis(200);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct WorkerLog {
    pub(super) clock: Clock,
    format: AccessLogFormat,
    refused_per_s: u32,
    lines: AccessLines,
    metrics: Arc<WorkerMetrics>,
    gathered: RefCell<Gathered>,
    refusals: Cell<Refusals>,
    /// Notified with the first line.
    begun: Notify,
}

#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    count: u64,
    second: Second,
}

/// Refusals of one second.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    unix_s: u64,
    written: u32,
    /// Without a line since the last one.
    left_out: u64,
}

impl WorkerLog {
    pub(crate) fn new(
        config: &AccessLog,
        lines: AccessLines,
        clock: Clock,
        metrics: Arc<WorkerMetrics>,
    ) -> Rc<Self> {
        Rc::new(Self {
            clock,
            format: config.format,
            refused_per_s: config.refused_per_s,
            lines,
            metrics,
            gathered: RefCell::default(),
            refusals: Cell::default(),
            begun: Notify::new(),
        })
    }

    /// Returns whether a refused request of this second gets a line, and the number left out before it.
    pub(super) fn takes_refusal(&self, unix_s: u64) -> Option<u64> {
        let mut refusals = self.refusals.get();
        if refusals.unix_s != unix_s {
            (refusals.unix_s, refusals.written) = (unix_s, 0);
        }
        let is_taken = refusals.written < self.refused_per_s;
        let left_out = refusals.left_out;
        if is_taken {
            (refusals.written, refusals.left_out) = (refusals.written + 1, 0);
        } else {
            refusals.left_out += 1;
            self.metrics.access_log.lines.increment(AccessLineOutcome::LeftOut);
        }
        self.refusals.set(refusals);
        is_taken.then_some(left_out)
    }

    /// Adds the line of a request that came in this second.
    pub(super) fn add(&self, unix_s: u64, record: &Record<'_>) {
        let gathered = &mut *self.gathered.borrow_mut();
        if !gathered.second.is(unix_s) {
            gathered.second = Second::at(unix_s);
        }
        line::write(self.format, &gathered.second, record, &mut gathered.bytes);
        gathered.count += 1;
        if gathered.bytes.len() >= ACCESS_LOG_BYTES {
            self.hand_over(gathered);
        } else if gathered.count == 1 {
            self.begun.notify_one();
        }
    }

    fn hand_over(&self, gathered: &mut Gathered) {
        let lines = &self.metrics.access_log.lines;
        lines.add(AccessLineOutcome::Lost, self.lines.take_lost());
        if gathered.count == 0 {
            return;
        }
        let count = std::mem::take(&mut gathered.count);
        lines.add(
            match self.lines.offer(std::mem::take(&mut gathered.bytes)) {
                true => AccessLineOutcome::Written,
                false => AccessLineOutcome::Dropped,
            },
            count,
        );
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        let mut gathered = self.gathered.take();
        self.hand_over(&mut gathered);
    }
}

/// Hands lines over for as long as the worker runs.
pub(crate) async fn hand_over(log: Rc<WorkerLog>) {
    loop {
        log.begun.notified().await;
        tokio::time::sleep(HANDED_OVER_EVERY).await;
        log.hand_over(&mut log.gathered.borrow_mut());
    }
}
