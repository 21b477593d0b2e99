//! One thread's share of the crowd: takes each person up at their moment and follows them to the end.

use crate::alarm::Alarm;
use crate::client::{Answer, Client};
use crate::counts::{ErrorKind, Outcome};
use crate::ledger::{End, Ledger};
use crate::plan::LoadPlan;
use flashweir_core::Rng;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Longest sleep between two looks at the stop flag.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);

/// What one thread's people share.
#[derive(Debug)]
pub(crate) struct Sender {
    plan: LoadPlan,
    /// Which thread this is, from 0.
    thread: usize,
    /// When offset zero of the schedule is.
    started: Instant,
    /// The bound on people on their way.
    most_in_flight: usize,
    client: Client,
    ledger: Mutex<Ledger>,
    in_flight: AtomicUsize,
    nobody_left: Notify,
}

/// One person.
#[derive(Clone, Copy, Debug)]
struct Person {
    /// Place in the whole schedule.
    index: u64,
    /// When they were to come.
    intended: Instant,
    /// The same as a whole second of the run.
    second: u64,
}

impl Sender {
    pub(crate) fn new(plan: LoadPlan, thread: usize, started: Instant, most_in_flight: usize) -> Self {
        let client = Client::new(&plan.target, plan.connections);
        Self {
            plan,
            thread,
            started,
            most_in_flight,
            client,
            ledger: Mutex::new(Ledger::new()),
            in_flight: AtomicUsize::new(0),
            nobody_left: Notify::new(),
        }
    }

    /// The thread's books. Locked for a moment by each person and five times a second by the reporter.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up everybody of this thread's share, then waits until the last one is settled.
    pub(crate) async fn send_all(self: Arc<Self>, mut alarm: Alarm) -> io::Result<()> {
        let ended = self.take_up_all(&mut alarm).await;
        self.ledger().advance_to(u64::MAX);
        // Everybody leaves when their patience ends, so this is bounded.
        while self.in_flight.load(Ordering::Relaxed) > 0 {
            self.nobody_left.notified().await;
        }
        ended
    }

    async fn take_up_all(self: &Arc<Self>, alarm: &mut Alarm) -> io::Result<()> {
        let share = self.plan.schedule.moments().enumerate().skip(self.thread);
        for (index, moment) in share.step_by(self.plan.threads.get()) {
            let person =
                Person { index: index as u64, intended: self.started + moment, second: moment.as_secs() };
            self.ledger().advance_to(person.second);
            if !self.wait_for(person.intended, alarm).await? {
                return Ok(());
            }
            self.take_up(person);
            // Those on their way get their turn even when we are late for everybody.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Whether the moment came before the stop.
    async fn wait_for(&self, moment: Instant, alarm: &mut Alarm) -> io::Result<bool> {
        loop {
            if self.plan.stop.is_set() {
                return Ok(false);
            }
            alarm.wait_until(moment.min(Instant::now() + LOOK_AT_STOP)).await?;
            if Instant::now() >= moment {
                return Ok(true);
            }
        }
    }

    fn take_up(self: &Arc<Self>, person: Person) {
        let lag = person.intended.elapsed();
        self.ledger().offer(person.second, lag);
        if self.in_flight.load(Ordering::Relaxed) >= self.most_in_flight {
            let outcome = Outcome::Failed(ErrorKind::GeneratorFull);
            self.ledger().settle(person.second, End { outcome, latency: lag, ttfb: None });
            return;
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let sender = Arc::clone(self);
        tokio::spawn(async move {
            let end = sender.follow(person).await;
            sender.ledger().settle(person.second, end);
            if sender.in_flight.fetch_sub(1, Ordering::Relaxed) == 1 {
                sender.nobody_left.notify_one();
            }
        });
    }

    /// From the moment the person came to the answer, or to the end of their patience.
    async fn follow(&self, person: Person) -> End {
        let sent = || self.ledger().sent(person.second);
        let asked = self.client.ask(self.source(person.index), sent);
        let leaves_at = person.intended + self.plan.patience;
        match tokio::time::timeout_at(leaves_at.into(), asked).await {
            Ok(answered) => self.judge(person.intended, answered),
            Err(_) => End { outcome: Outcome::TimedOut, latency: self.plan.patience, ttfb: None },
        }
    }

    fn judge(&self, intended: Instant, answered: Result<Answer, ErrorKind>) -> End {
        let answer = match answered {
            Ok(answer) => answer,
            Err(kind) => {
                return End { outcome: Outcome::Failed(kind), latency: intended.elapsed(), ttfb: None };
            }
        };
        let latency = answer.end_at.saturating_duration_since(intended);
        let ttfb = Some(answer.head_at.saturating_duration_since(intended));
        // A generator that runs late must not let people wait beyond their patience.
        if latency > self.plan.patience {
            return End { outcome: Outcome::TimedOut, latency, ttfb };
        }
        let outcome = match answer.status.as_u16() {
            200..=399 => Outcome::Completed { good: latency <= self.plan.good_within },
            429 | 503 => Outcome::Refused { reason: answer.reason },
            400..=499 => Outcome::Failed(ErrorKind::Status4xx),
            500..=599 => Outcome::Failed(ErrorKind::Status5xx),
            _ => Outcome::Failed(ErrorKind::Malformed),
        };
        End { outcome, latency, ttfb }
    }

    /// The person's address: the same for the same seed, whichever thread takes them up.
    fn source(&self, index: u64) -> Option<Ipv4Addr> {
        (self.plan.sources > 1).then(|| {
            let number = Rng::new(self.plan.seed).fork(index).below(u64::from(self.plan.sources));
            // Below LOAD_SOURCES, which is 2^16: two bytes.
            let [high, low] = (number as u16).to_be_bytes();
            Ipv4Addr::new(127, SOURCE_NETWORK, high, low)
        })
    }
}

/// Second byte of the addresses people come from: 127.77.0.0/16 is rarely used by anybody else.
const SOURCE_NETWORK: u8 = 77;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Schedule, Target};
    use flashweir_core::Reason;
    use http::StatusCode;
    use std::collections::HashSet;

    fn sender(sources: u32, thread: usize) -> Sender {
        let target = Target::parse("http://127.0.0.1:1/").unwrap();
        let plan = LoadPlan {
            sources,
            ..LoadPlan::new(target, Schedule::Fixed([Duration::ZERO].as_slice().into()))
        };
        Sender::new(plan, thread, Instant::now(), 10)
    }

    #[test]
    fn a_persons_address_depends_on_the_seed_alone() {
        let (first, second) = (sender(1000, 0), sender(1000, 1));
        assert!((0..100).all(|person| first.source(person) == second.source(person)));
        let distinct: HashSet<_> = (0..10_000).map(|person| first.source(person)).collect();
        assert_eq!(distinct.len(), 1000);
        assert_eq!(sender(1, 0).source(5), None);
    }

    #[test]
    fn answers_are_judged_by_status_and_time() {
        let sender = sender(1, 0);
        let intended = Instant::now();
        let check = |status, after_ms, wanted| {
            let end_at = intended + Duration::from_millis(after_ms);
            let status = StatusCode::from_u16(status).unwrap();
            let answer = Answer { status, reason: Some(Reason::FlashCrowd), head_at: end_at, end_at };
            assert_eq!(sender.judge(intended, Ok(answer)).outcome, wanted, "{status} after {after_ms} ms");
        };
        check(200, 1000, Outcome::Completed { good: true });
        check(304, 1001, Outcome::Completed { good: false });
        check(200, 2001, Outcome::TimedOut);
        check(503, 2001, Outcome::TimedOut);
        check(503, 5, Outcome::Refused { reason: Some(Reason::FlashCrowd) });
        check(429, 5, Outcome::Refused { reason: Some(Reason::FlashCrowd) });
        check(404, 5, Outcome::Failed(ErrorKind::Status4xx));
        check(500, 5, Outcome::Failed(ErrorKind::Status5xx));
        check(101, 5, Outcome::Failed(ErrorKind::Malformed));
    }
}
