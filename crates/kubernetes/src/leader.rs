//! Keeps a Lease, or tries to get it.

use crate::back_off::BackOff;
use crate::cluster::{ApiError, Cluster};
use crate::lease::{Election, LeaseStep};
use flashweir_core::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;
use tracing::{info, warn};

/// Writes within a Lease's duration: two may be lost.
const WRITES_PER_DURATION: u32 = 4;

/// One candidate's part in the election, shared with the loop that asks whether it leads.
pub(crate) struct Leader {
    cluster: Rc<Cluster>,
    namespace: String,
    name: String,
    election: RefCell<Election>,
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
        Self { cluster, namespace, name, election, began }
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.began.elapsed())
    }

    /// The term in which this program leads; none if it does not.
    pub(crate) fn term(&self) -> Option<u64> {
        self.election.borrow().term(self.now())
    }

    /// Whether it still leads when a call that begins now has ended.
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

    async fn step(&self) -> Result<(), ApiError> {
        let read = self.cluster.lease(&self.namespace, &self.name).await?;
        let step = self.election.borrow_mut().step(self.now(), read.as_ref());
        let (LeaseStep::Create { transitions } | LeaseStep::Replace { transitions, .. }) = step else {
            return Ok(());
        };
        let began = self.now();
        let (identity, duration) = (self.identity(), self.election.borrow().duration());
        let written = self.cluster.write_lease(&self.namespace, &self.name, &identity, duration, &step).await;
        match &written {
            Ok(()) => self.election.borrow_mut().written(began, transitions),
            Err(ApiError::Conflict) => self.election.borrow_mut().refused(),
            // It may have been written all the same; the old write counts as long as it did.
            Err(_) => {}
        }
        written
    }

    /// Gives the Lease up, so that another need not wait for its end.
    pub(crate) async fn give_up(&self) {
        let Some(transitions) = self.term() else { return };
        let Ok(Some(read)) = self.cluster.lease(&self.namespace, &self.name).await else { return };
        if read.holder.as_deref() != Some(&self.identity()) {
            return;
        }
        self.step_down();
        let step = LeaseStep::Replace { version: read.version, transitions };
        // One that is not given up ends by itself.
        let _ended_anyway =
            self.cluster.write_lease(&self.namespace, &self.name, "", Duration::from_secs(1), &step).await;
    }
}
