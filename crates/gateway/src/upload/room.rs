//! The uploads of one worker whose clients are waited for, and which of them goes when there are too many:
//! the slowest.
//!
//! | phase | holds | bounds |
//! |---|---|---|
//! | gathering | memory | `UPLOADS_GATHERED`, `UPLOADS_GATHERED_PER_CLIENT`, `UPLOADS_GATHERED_BYTES`, a time limit |
//! | holding | an upstream connection | a part of the pool (`UPLOADS_POOL_PARTS`), of that a part for each client |
//!
//! An upload's speed is what its client sent, divided by how long the client was waited for: what the origin
//! takes its time for says nothing of the client. No client is judged before [`GRACE`], so that a client on a
//! long way is not taken for one that sends nothing. Finding the slowest takes a look at all of them, and
//! happens only where a bound is met.

use flashweir_core::{Duration, Instant, limits};
use flashweir_telemetry::{UploadCut, WorkerMetrics};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// Waiting for a client for less than this says nothing of it: two round trips to the other side of the
/// world.
const GRACE: Duration = Duration::from_millis(500);
/// Time between two looks at all uploads.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One worker's uploads.
pub(crate) struct UploadRoom {
    metrics: Arc<WorkerMetrics>,
    sweep_wanted: Rc<Notify>,
    uploads: RefCell<Slab<Rc<Upload>>>,
    /// Number of bodies of each client that are being gathered.
    clients: RefCell<HashMap<u64, usize>>,
    gathering: Cell<usize>,
    bytes: Cell<usize>,
    looked_at: Cell<Instant>,
}

/// Pool of upstream connections of which an upload holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldOptions {
    /// The service's number.
    pub(crate) pool: usize,
    /// Requests that this worker may have at the service's upstreams at once.
    pub(crate) capacity: usize,
}

/// One upload whose client was waited for at least once; leaves the room when dropped.
#[derive(Debug)]
pub(crate) struct UploadTicket {
    room: Rc<UploadRoom>,
    key: usize,
    upload: Rc<Upload>,
}

#[derive(Debug)]
struct Upload {
    client: u64,
    phase: Phase,
    /// Deadline, if there is one.
    until: Option<Instant>,
    received: Cell<u64>,
    waited: Cell<Duration>,
    waiting_since: Cell<Option<Instant>>,
    cut: Cell<Option<UploadCut>>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Holding(HoldOptions),
}

/// Key for choosing the first upload to cut: bytes a second while waited for, and among equals the longest
/// wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Speed {
    bytes_per_s: u64,
    waited: std::cmp::Reverse<Duration>,
}

impl UploadRoom {
    pub(crate) fn new(metrics: Arc<WorkerMetrics>, sweep_wanted: Rc<Notify>) -> Rc<Self> {
        Rc::new(Self {
            metrics,
            sweep_wanted,
            uploads: RefCell::default(),
            clients: RefCell::default(),
            gathering: Cell::new(0),
            bytes: Cell::new(0),
            looked_at: Cell::new(Instant::ZERO),
        })
    }

    /// No upload is waited for: no sweep is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.uploads.borrow().is_empty()
    }

    /// A body that has to be here by `until`. Where a bound is met by it, the slowest of its client's, or of
    /// all, goes.
    pub(super) fn gather(self: &Rc<Self>, now: Instant, client: u64, until: Instant) -> UploadTicket {
        let ticket = self.enter(client, Phase::Gathering, Some(until));
        self.gathering.set(self.gathering.get() + 1);
        self.metrics.uploads.gather_begun.increment();
        let of_client = {
            let mut clients = self.clients.borrow_mut();
            let count = clients.entry(client).or_insert(0);
            *count += 1;
            *count
        };
        if of_client > limits::UPLOADS_GATHERED_PER_CLIENT {
            self.cut_slowest(now, UploadCut::PerClient, |upload| upload.client == client);
        } else if self.gathering.get() > limits::UPLOADS_GATHERED {
            self.cut_slowest(now, UploadCut::Gathered, |_| true);
        }
        ticket
    }

    /// An upload that holds an upstream connection, or a share of them, while its client is waited for.
    pub(super) fn hold(
        self: &Rc<Self>,
        client: u64,
        options: HoldOptions,
        until: Option<Instant>,
    ) -> UploadTicket {
        self.metrics.uploads.hold_begun.increment();
        self.enter(client, Phase::Holding(options), until)
    }

    /// Returns whether a body of which little is known may go on as far as it has come, and hold a
    /// connection: while few do.
    pub(super) fn may_stream(&self, client: u64, options: HoldOptions) -> bool {
        let (mut of_pool, mut of_client) = (0, 0);
        for (_, upload) in self.uploads.borrow().iter().filter(|(_, upload)| upload.holds(options.pool)) {
            of_pool += 1;
            of_client += usize::from(upload.client == client);
        }
        of_pool < options.most() / 2 && of_client < options.most_per_client().div_ceil(2)
    }

    /// Cuts what is overdue, and of the uploads that hold connections those beyond the bounds, the slowest
    /// first. O(n log n) at most each [`LOOK_EVERY`].
    pub(crate) fn sweep(&self, now: Instant) {
        if now.saturating_since(self.looked_at.get()) < LOOK_EVERY {
            return;
        }
        self.looked_at.set(now);
        let mut slow: Vec<(HoldOptions, Speed, Rc<Upload>)> = Vec::new();
        let mut overdue: Vec<Rc<Upload>> = Vec::new();
        for (_, upload) in self.uploads.borrow().iter().filter(|(_, upload)| upload.cut.get().is_none()) {
            if upload.until.is_some_and(|until| now >= until) {
                overdue.push(upload.clone());
            } else if let Phase::Holding(options) = upload.phase {
                slow.extend(upload.speed(now).map(|speed| (options, speed, upload.clone())));
            }
        }
        overdue.iter().for_each(|upload| self.cut(upload, UploadCut::Timeout));
        slow.sort_by_key(|(options, speed, _)| (options.pool, std::cmp::Reverse(*speed)));
        let (mut pool, mut of_pool) = (usize::MAX, 0);
        let mut of_clients = HashMap::new();
        for (options, _, upload) in slow {
            if options.pool != pool {
                (pool, of_pool) = (options.pool, 0);
                of_clients.clear();
            }
            let of_client = of_clients.entry(upload.client).or_insert(0);
            if of_pool >= options.most() {
                self.cut(&upload, UploadCut::Held);
            } else if *of_client >= options.most_per_client() {
                self.cut(&upload, UploadCut::HeldPerClient);
            } else {
                of_pool += 1;
                *of_client += 1;
            }
        }
    }

    fn enter(self: &Rc<Self>, client: u64, phase: Phase, until: Option<Instant>) -> UploadTicket {
        let upload = Rc::new(Upload {
            client,
            phase,
            until,
            received: Cell::new(0),
            waited: Cell::new(Duration::ZERO),
            waiting_since: Cell::new(None),
            cut: Cell::new(None),
            waker: RefCell::default(),
        });
        let key = self.uploads.borrow_mut().insert(upload.clone());
        self.sweep_wanted.notify_one();
        UploadTicket { room: self.clone(), key, upload }
    }

    /// Cuts the slowest body that is being gathered; before anyone is slow, the one that was waited for
    /// longest.
    fn cut_slowest(&self, now: Instant, why: UploadCut, is_meant: impl Fn(&Upload) -> bool) {
        let slowest = {
            let uploads = self.uploads.borrow();
            let meant = uploads.iter().map(|(_, upload)| upload).filter(|upload| {
                matches!(upload.phase, Phase::Gathering) && upload.cut.get().is_none() && is_meant(upload)
            });
            let order = |upload: &&Rc<Upload>| {
                let waited = std::cmp::Reverse(upload.waited(now));
                upload.speed(now).unwrap_or(Speed { bytes_per_s: u64::MAX, waited })
            };
            meant.min_by_key(order).cloned()
        };
        slowest.into_iter().for_each(|upload| self.cut(&upload, why));
    }

    fn cut(&self, upload: &Upload, why: UploadCut) {
        upload.cut.set(Some(why));
        self.metrics.uploads.cut.increment(why);
        self.forget(upload);
        let waker = upload.waker.borrow_mut().take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// It counts no longer.
    fn forget(&self, upload: &Upload) {
        match upload.phase {
            Phase::Holding(_) => self.metrics.uploads.hold_ended.increment(),
            Phase::Gathering => {
                self.metrics.uploads.gather_ended.increment();
                self.gathering.set(self.gathering.get() - 1);
                self.bytes.set(self.bytes.get().saturating_sub(upload.received.get() as usize));
                let mut clients = self.clients.borrow_mut();
                if let Some(count) = clients.get_mut(&upload.client) {
                    *count -= 1;
                    if *count == 0 {
                        clients.remove(&upload.client);
                    }
                }
            }
        }
    }
}

impl HoldOptions {
    /// Uploads that are waited for and hold a connection of the pool.
    fn most(self) -> usize {
        (self.capacity / limits::UPLOADS_POOL_PARTS).max(1)
    }

    /// Maximum of one client.
    fn most_per_client(self) -> usize {
        (self.most() / limits::UPLOADS_CLIENT_PARTS).max(1)
    }
}

impl UploadTicket {
    /// The client has to send something. The waker is woken when the upload is cut.
    pub(super) fn waits(&self, now: Instant, waker: &Waker) {
        let upload = &self.upload;
        upload.waiting_since.set(upload.waiting_since.get().or(Some(now)));
        let mut known = upload.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    /// The client sent something.
    pub(super) fn received(&self, now: Instant, bytes: usize) {
        let (room, upload) = (&self.room, &self.upload);
        upload.waited.set(upload.waited(now));
        upload.waiting_since.set(None);
        upload.received.set(upload.received.get() + bytes as u64);
        if matches!(upload.phase, Phase::Gathering) && upload.cut.get().is_none() {
            room.bytes.set(room.bytes.get() + bytes);
            if room.bytes.get() > limits::UPLOADS_GATHERED_BYTES {
                room.cut_slowest(now, UploadCut::Bytes, |upload| upload.received.get() > 0);
            }
        }
    }

    /// Reason for which it has to end, if it has to.
    pub(super) fn cut(&self) -> Option<UploadCut> {
        self.upload.cut.get()
    }
}

impl Drop for UploadTicket {
    fn drop(&mut self) {
        if self.upload.cut.get().is_none() {
            self.room.forget(&self.upload);
        }
        let gone = self.room.uploads.borrow_mut().remove(self.key);
        drop(gone);
    }
}

impl Upload {
    fn holds(&self, pool: usize) -> bool {
        self.cut.get().is_none() && matches!(self.phase, Phase::Holding(options) if options.pool == pool)
    }

    fn waited(&self, now: Instant) -> Duration {
        let waiting = self.waiting_since.get().map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.waited.get() + waiting
    }

    /// None before enough is known of the client.
    fn speed(&self, now: Instant) -> Option<Speed> {
        let waited = self.waited(now);
        (waited >= GRACE).then(|| Speed {
            // At least half a second and at most years, in milliseconds; a body has fewer than 2^59 bytes.
            bytes_per_s: self.received.get().saturating_mul(1_000) / waited.as_millis().max(1) as u64,
            waited: std::cmp::Reverse(waited),
        })
    }
}

impl fmt::Debug for UploadRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadRoom").field("gathering", &self.gathering).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
