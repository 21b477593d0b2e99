//! State that the people of one thread share.

use crate::LoadError;
use crate::alarm::Alarm;
use crate::ledger::Ledger;
use crate::plan::LoadPlan;
use crate::transport::Transport;
use crate::waiting::Waiting;
use flashweir_core::limits::LOAD_PEOPLE_WAITING;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// State that the people of one thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: LoadPlan,
    /// Time of the schedule's offset zero.
    pub(crate) started: Instant,
    /// End of the schedule: nothing begins after it.
    pub(crate) ends_at: Instant,
    /// The bound on tries under way.
    pub(crate) most_in_flight: usize,
    pub(crate) transport: Transport,
    pub(crate) waiting: Waiting,
    pub(crate) alarm: Alarm,
    ledger: Mutex<Ledger>,
    /// Tries under way.
    pub(crate) in_flight: AtomicUsize,
}

impl Shared {
    /// Must be called inside the runtime that will send.
    pub(crate) fn new(plan: LoadPlan, started: Instant, most_in_flight: usize) -> Result<Self, LoadError> {
        let transport = Transport::new(&plan.target, &plan.transport)?;
        Ok(Self {
            ends_at: started + plan.schedule.length(),
            ledger: Mutex::new(Ledger::new(plan.classes.len())),
            plan,
            started,
            most_in_flight,
            transport,
            waiting: Waiting::new(LOAD_PEOPLE_WAITING),
            alarm: Alarm::new().map_err(LoadError::Start)?,
            in_flight: AtomicUsize::new(0),
        })
    }

    /// The thread's books. Locked for a moment by each try and five times a second by the reporter.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
