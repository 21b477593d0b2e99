//! One thread's share of the crowd: takes each person up at their moment.

use crate::plan::LoadPlan;
use crate::shared::Shared;
use crate::{LoadError, person};
use flashweir_workload::{Arrival, Part};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest sleep between two looks at the stop flag.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);
/// A moment so near is waited for awake: going to sleep and waking take longer.
const AWAKE_FOR: Duration = Duration::from_micros(20);
/// People taken up in a row before those on their way get their turn: short, or answers would wait for it.
const TAKEN_UP_IN_A_ROW: usize = 16;

/// One thread's people, those to come and those who are there.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) shared: Shared,
    /// The part of the schedule that is this thread's.
    part: Part,
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
        let shared = Shared::new(plan, started, most_in_flight)?;
        Ok(Self { shared, part, people: AtomicUsize::new(0) })
    }

    /// Takes up all people of this thread's share, then waits until the last one has left.
    pub(crate) async fn send_all(self: Arc<Self>) -> io::Result<()> {
        let ended = self.take_up_all().await;
        // People who think or wait begin no further request; requests under way end with their timeout.
        self.shared.waiting.close();
        while self.people.load(Ordering::Relaxed) > 0 {
            self.shared.alarm.wait_until(Instant::now() + LOOK_AT_STOP).await?;
        }
        ended
    }

    async fn take_up_all(self: &Arc<Self>) -> io::Result<()> {
        let mut arrivals = self.shared.plan.schedule.part(self.part).peekable();
        loop {
            if self.shared.plan.stop.is_set() {
                return Ok(());
            }
            let now = Instant::now();
            for _ in 0..TAKEN_UP_IN_A_ROW {
                match arrivals.next_if(|arrival| self.shared.started + arrival.moment <= now) {
                    Some(arrival) => self.take_up(arrival),
                    None => break,
                }
            }
            let wakes = self.shared.waiting.wake(now);
            let comes = arrivals.peek().map(|arrival| self.shared.started + arrival.moment);
            if comes.is_none() && self.people.load(Ordering::Relaxed) == 0 {
                return Ok(());
            }
            let next = [comes, wakes].into_iter().flatten().min().unwrap_or(now + LOOK_AT_STOP);
            if next <= now + AWAKE_FOR {
                tokio::task::yield_now().await;
            } else {
                self.shared.alarm.wait_until(next.min(now + LOOK_AT_STOP)).await?;
            }
        }
    }

    fn take_up(self: &Arc<Self>, arrival: Arrival) {
        self.people.fetch_add(1, Ordering::Relaxed);
        let sender = Arc::clone(self);
        tokio::spawn(async move {
            person::live(&sender.shared, arrival).await;
            if sender.people.fetch_sub(1, Ordering::Relaxed) == 1 {
                // The loop may be waiting for the last one; if it cannot be woken it looks by itself soon.
                let _ = sender.shared.alarm.bring_forward(Instant::now());
            }
        });
    }
}
