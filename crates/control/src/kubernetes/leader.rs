//! Keeps a Lease, or tries to get it.

use crate::kubernetes::back_off::BackOff;
use crate::kubernetes::cluster::{ApiError, Cluster};
use crate::kubernetes::lease::{Election, LeaseRecord, LeaseStep};
use flashweir_core::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tracing::{info, warn};

/// Writes within a Lease's duration: two may be lost.
pub(crate) const WRITES_PER_DURATION: u32 = 4;

/// One candidate's part in the election, shared with the loop that asks whether it leads.
pub(crate) struct Leader {
    cluster: Rc<Cluster>,
    namespace: String,
    name: String,
    election: RefCell<Election>,
    /// As it was last written here, so that it need not be read before it is renewed.
    written: RefCell<Option<LeaseRecord>>,
    writes: Cell<u64>,
    began: tokio::time::Instant,
}

impl Leader {
    pub(crate) fn new(
        cluster: Rc<Cluster>,
        namespace: String,
        name: String,
        identity: String,
        duration: Duration,
        began: tokio::time::Instant,
    ) -> Self {
        let election = RefCell::new(Election::new(identity, duration));
        Self { cluster, namespace, name, election, written: RefCell::default(), writes: Cell::new(0), began }
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.began.elapsed())
    }

    /// The term in which this program leads; none if it does not.
    pub(crate) fn term(&self) -> Option<u64> {
        self.election.borrow().term(self.now())
    }

    /// Returns whether it still leads when a call that begins now has ended.
    pub(crate) fn leads_for(&self, within: Duration) -> bool {
        self.election.borrow().leads_for(self.now(), within)
    }

    /// Another's later term was read: this program leads no more.
    pub(crate) fn step_down(&self) {
        self.election.borrow_mut().refused();
    }

    pub(crate) fn identity(&self) -> String {
        self.election.borrow().identity().to_owned()
    }

    /// Takes part until the future is dropped.
    pub(crate) async fn run(&self, seed: u64) {
        let every = self.election.borrow().duration() / WRITES_PER_DURATION;
        let mut back_off = BackOff::new(seed);
        let mut was_leading = false;
        loop {
            let waits = match self.step().await {
                Ok(()) | Err(ApiError::Conflict) => {
                    if back_off.succeeded() {
                        info!("API server heard again");
                    }
                    every
                }
                Err(error) => {
                    if !back_off.is_failing() {
                        warn!(%error, "the Lease cannot be kept; gateways go on with what they have");
                    }
                    back_off.failed().max(every)
                }
            };
            let term = self.term();
            if term.is_some() != was_leading {
                was_leading = term.is_some();
                match term {
                    Some(term) => info!(term, "leads"),
                    None => info!("leads no more"),
                }
            }
            tokio::time::sleep(waits).await;
        }
    }

    /// Reads the Lease where that is needed, and writes it where this candidate holds it or may take it.
    pub(crate) async fn step(&self) -> Result<(), ApiError> {
        let known = self.written.take().filter(|_| self.term().is_some());
        let read = match known {
            Some(written) => Some(written),
            None => self.cluster.lease(&self.namespace, &self.name).await?,
        };
        let step = self.election.borrow_mut().step(self.now(), read.as_ref());
        let (LeaseStep::Create { transitions } | LeaseStep::Replace { transitions, .. }) = step else {
            return Ok(());
        };
        let began = self.now();
        let (identity, duration) = (self.identity(), self.election.borrow().duration());
        self.writes.set(self.writes.get() + 1);
        let written = self.cluster.write_lease(&self.namespace, &self.name, &identity, duration, &step).await;
        match &written {
            Ok(version) => {
                self.election.borrow_mut().written(began, transitions);
                let (holder, version) = (Some(identity), version.clone());
                let record = LeaseRecord { holder, duration, transitions, version };
                *self.written.borrow_mut() = Some(record).filter(|record| !record.version.is_empty());
            }
            Err(ApiError::Conflict) => self.election.borrow_mut().refused(),
            // It may have been written all the same; the old write counts as long as it did.
            Err(_) => {}
        }
        written.map(drop)
    }

    /// A Lease that was read by others, as by a watch.
    pub(crate) fn heard(&self, read: Option<&LeaseRecord>) {
        let _what_a_step_would_do = self.election.borrow_mut().step(self.now(), read);
    }

    /// The next term is at least this.
    pub(crate) fn set_least_term(&self, least_term: u64) {
        self.election.borrow_mut().set_least_term(least_term);
    }

    /// Time at which another's Lease may be taken over; none: no other is known to hold it.
    pub(crate) fn expires_at(&self) -> Option<tokio::time::Instant> {
        self.election.borrow().expires_at().map(|at| self.timer_at(at))
    }

    /// Until when this program leads, and in which term.
    pub(crate) fn held(&self) -> Option<(tokio::time::Instant, u64)> {
        let held = self.election.borrow().held().filter(|(until, _)| *until > self.now());
        held.map(|(until, term)| (self.timer_at(until), term))
    }

    fn timer_at(&self, at: Instant) -> tokio::time::Instant {
        self.began + at.saturating_since(Instant::ZERO)
    }

    /// Writes of the Lease so far, those that failed included.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Gives the Lease up, so that another need not wait for its end.
    pub(crate) async fn give_up(&self) {
        let Some(transitions) = self.term() else { return };
        let Ok(Some(read)) = self.cluster.lease(&self.namespace, &self.name).await else { return };
        if read.holder.as_deref() != Some(&self.identity()) {
            return;
        }
        self.step_down();
        self.writes.set(self.writes.get() + 1);
        let step = LeaseStep::Replace { version: read.version, transitions };
        // One that is not given up ends by itself.
        let _ended_anyway =
            self.cluster.write_lease(&self.namespace, &self.name, "", Duration::from_secs(1), &step).await;
    }
}
