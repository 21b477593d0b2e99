//! One thread's share of the crowd: takes each person up at their moment.

use crate::alarm::Alarm;
use crate::ledger::Ledger;
use crate::plan::LoadPlan;
use crate::transport::Transport;
use crate::waiting::Waiting;
use crate::{LoadError, person};
use flashweir_core::limits::LOAD_PEOPLE_WAITING;
use flashweir_workload::{Arrival, Part};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest sleep between two looks at the stop flag.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);
/// A moment so near is waited for awake: going to sleep and waking take longer.
const AWAKE_FOR: Duration = Duration::from_micros(20);
/// People taken up in a row before those on their way get their turn: short, or answers would wait for it.
const TAKEN_UP_IN_A_ROW: usize = 16;

/// State that one thread's people share.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) plan: LoadPlan,
    /// The part of the schedule that is this thread's.
    part: Part,
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
    /// People who have come and not left.
    people: AtomicUsize,
}

impl Sender {
    /// Must be called inside the runtime that will send.
    pub(crate) fn new(
        plan: LoadPlan,
        part: Part,
        started: Instant,
        most_in_flight: usize,
    ) -> Result<Self, LoadError> {
        let transport = Transport::new(&plan.target, &plan.transport)?;
        Ok(Self {
            ends_at: started + plan.schedule.length(),
            ledger: Mutex::new(Ledger::new(plan.classes.len())),
            plan,
            part,
            started,
            most_in_flight,
            transport,
            waiting: Waiting::new(LOAD_PEOPLE_WAITING),
            alarm: Alarm::new().map_err(LoadError::Start)?,
            in_flight: AtomicUsize::new(0),
            people: AtomicUsize::new(0),
        })
    }

    /// The thread's books. Locked for a moment by each try and five times a second by the reporter.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up all people of this thread's share, then waits until the last one has left.
    pub(crate) async fn send_all(self: Arc<Self>) -> io::Result<()> {
        let ended = self.take_up_all().await;
        // People who think or wait begin no further request; requests under way end with their timeout.
        self.waiting.close();
        while self.people.load(Ordering::Relaxed) > 0 {
            self.alarm.wait_until(Instant::now() + LOOK_AT_STOP).await?;
        }
        ended
    }

    async fn take_up_all(self: &Arc<Self>) -> io::Result<()> {
        let mut arrivals = self.plan.schedule.part(self.part).peekable();
        loop {
            if self.plan.stop.is_set() {
                return Ok(());
            }
            let now = Instant::now();
            for _ in 0..TAKEN_UP_IN_A_ROW {
                match arrivals.next_if(|arrival| self.started + arrival.moment <= now) {
                    Some(arrival) => self.take_up(arrival),
                    None => break,
                }
            }
            let wakes = self.waiting.wake(now);
            let comes = arrivals.peek().map(|arrival| self.started + arrival.moment);
            if comes.is_none() && self.people.load(Ordering::Relaxed) == 0 {
                return Ok(());
            }
            let next = [comes, wakes].into_iter().flatten().min().unwrap_or(now + LOOK_AT_STOP);
            if next <= now + AWAKE_FOR {
                tokio::task::yield_now().await;
            } else {
                self.alarm.wait_until(next.min(now + LOOK_AT_STOP)).await?;
            }
        }
    }

    fn take_up(self: &Arc<Self>, arrival: Arrival) {
        self.people.fetch_add(1, Ordering::Relaxed);
        let sender = Arc::clone(self);
        tokio::spawn(async move {
            person::live(&sender, arrival).await;
            if sender.people.fetch_sub(1, Ordering::Relaxed) == 1 {
                // The loop may be waiting for the last one; if it cannot be woken it looks by itself soon.
                let _ = sender.alarm.bring_forward(Instant::now());
            }
        });
    }
}
