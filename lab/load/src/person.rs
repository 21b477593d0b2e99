//! One person, from the moment they come until they leave.

use crate::counts::{ErrorKind, TryOutcome};
use crate::ledger::{Cell, End};
use crate::plan::ClassPlan;
use crate::shared::Shared;
use crate::transport::Answer;
use crate::waiting::NotWaited;
use flashweir_workload::Arrival;
use flashweir_workload::people::{Failure, Person};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// State that a person's requests share.
struct Visit<'a> {
    shared: &'a Shared,
    class: &'a ClassPlan,
    class_number: u16,
    source: Option<IpAddr>,
}

/// One try for an answer.
struct Try {
    /// Time at which it was to begin.
    intended: Instant,
    /// Time of the person's first try for this.
    first_asked: Instant,
    is_first: bool,
    /// Time at which the person leaves in any case.
    leaves_at: Option<Instant>,
}

/// Outcome of a try, as far as it matters for the person's next step.
enum Then {
    Served,
    /// The person may try again.
    Failed(Failure, Option<Duration>),
    Left,
}

/// Follows a person through their session.
pub(crate) async fn live(shared: &Shared, arrival: Arrival) {
    let class = &shared.plan.classes[usize::from(arrival.class)];
    let seed = shared.plan.seed;
    let source = shared.plan.sources.of(seed, arrival.class, arrival.person);
    let visit = Visit { shared, class, class_number: arrival.class, source };
    let mut person = class.habits.person(seed, arrival.class, arrival.person);
    let mut room = String::new();
    let mut asks_at = shared.started + arrival.moment;
    let mut next = person.next_request();
    while let Some(request) = next {
        let path = class.paths.path(person.document(request, &class.popularity), &mut room);
        let served = visit.ask(&person, path, asks_at).await;
        if !served && !class.goes_on_unserved {
            return;
        }
        asks_at = Instant::now() + person.think();
        next = person.next_request();
        if next.is_some() && visit.wait_until(asks_at, true).await.is_err() {
            return;
        }
    }
}

impl Visit<'_> {
    /// Asks until served; whether they were.
    async fn ask(&self, person: &Person, path: &str, asks_at: Instant) -> bool {
        let mut attempt = Try {
            intended: asks_at,
            first_asked: asks_at,
            is_first: true,
            leaves_at: person.patience().map(|patience| asks_at + patience),
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let (why, asked) = match self.attempt(&attempt, path).await {
                Then::Served => return true,
                Then::Left => return false,
                Then::Failed(why, asked) => (why, asked),
            };
            let Some(wait) = person.retry_after(why, tries, asked) else { return false };
            let again_at = Instant::now() + wait;
            if attempt.leaves_at.is_some_and(|leaves_at| leaves_at <= again_at)
                || self.wait_until(again_at, false).await.is_err()
            {
                return false;
            }
            attempt = Try { intended: again_at, is_first: false, ..attempt };
        }
    }

    /// Waits for the next try, the first for its answer or not. Nothing begins after the end of the schedule.
    async fn wait_until(&self, moment: Instant, is_first: bool) -> Result<(), NotWaited> {
        if moment >= self.shared.ends_at || self.shared.plan.stop.is_set() {
            return Err(NotWaited::Closed);
        }
        if moment <= Instant::now() {
            return Ok(());
        }
        let waited = self.shared.waiting.until(moment, &self.shared.alarm).await;
        if waited == Err(NotWaited::Full) {
            self.turn_away(moment, is_first);
        }
        waited
    }

    /// Enters a try in the books that would have begun, had there been room to wait for it.
    fn turn_away(&self, moment: Instant, is_first: bool) {
        let cell = self.cell(moment);
        let attempt = Try { intended: moment, first_asked: moment, is_first, leaves_at: None };
        let mut ledger = self.shared.ledger();
        ledger.offer(cell, is_first, Duration::ZERO);
        ledger.settle(cell, &attempt.ended(TryOutcome::Failed(ErrorKind::GeneratorFull), moment));
    }

    fn cell(&self, intended: Instant) -> Cell {
        let second = intended.saturating_duration_since(self.shared.started).as_secs();
        Cell { second, class: self.class_number }
    }

    /// One try, from its entry in the books to its outcome there.
    async fn attempt(&self, attempt: &Try, path: &str) -> Then {
        let shared = self.shared;
        let cell = self.cell(attempt.intended);
        shared.ledger().offer(cell, attempt.is_first, attempt.intended.elapsed());
        let (end, asked) = if shared.in_flight.load(Ordering::Relaxed) >= shared.most_in_flight {
            (attempt.end(Err(ErrorKind::GeneratorFull), self.class), None)
        } else {
            shared.in_flight.fetch_add(1, Ordering::Relaxed);
            let ended = self.send(attempt, cell, path).await;
            shared.in_flight.fetch_sub(1, Ordering::Relaxed);
            ended
        };
        shared.ledger().settle(cell, &end);
        match end.outcome {
            TryOutcome::Completed { .. } => Then::Served,
            TryOutcome::Refused { .. } => Then::Failed(Failure::Refused, asked),
            TryOutcome::TimedOut => Then::Failed(Failure::TimedOut, None),
            TryOutcome::Failed(_) => Then::Failed(Failure::Broken, None),
            TryOutcome::Abandoned => Then::Left,
        }
    }

    async fn send(&self, attempt: &Try, cell: Cell, path: &str) -> (End, Option<Duration>) {
        let sent = || self.shared.ledger().sent(cell);
        let answered = self.shared.transport.ask(self.source, &self.class.request, path, sent);
        match tokio::time::timeout_at(attempt.deadline(self.class).into(), answered).await {
            Ok(answer) => {
                let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
                (attempt.end(answer, self.class), asked)
            }
            Err(_) => (attempt.given_up(self.class), None),
        }
    }
}

impl Try {
    /// Time at which the client or the person gives up, the earlier of both.
    fn deadline(&self, class: &ClassPlan) -> Instant {
        let times_out = self.intended + class.timeout;
        self.leaves_at.map_or(times_out, |leaves_at| leaves_at.min(times_out))
    }

    fn given_up(&self, class: &ClassPlan) -> End {
        let deadline = self.deadline(class);
        let leaves = self.leaves_at == Some(deadline);
        self.ended(if leaves { TryOutcome::Abandoned } else { TryOutcome::TimedOut }, deadline)
    }

    /// The verdict on what came back.
    fn end(&self, answered: Result<Answer, ErrorKind>, class: &ClassPlan) -> End {
        let answer = match answered {
            Ok(answer) => answer,
            Err(kind) => return self.ended(TryOutcome::Failed(kind), Instant::now()),
        };
        // A generator that runs late must not let people wait longer than they would.
        if answer.end_at > self.deadline(class) {
            return self.given_up(class);
        }
        let good = answer.end_at.saturating_duration_since(self.intended) <= class.good_within;
        let outcome = match answer.status {
            200..=399 => TryOutcome::Completed { good },
            429 | 503 => TryOutcome::Refused { status: answer.status, reason: answer.reason },
            400..=499 => TryOutcome::Failed(ErrorKind::Status4xx),
            500..=599 => TryOutcome::Failed(ErrorKind::Status5xx),
            _ => TryOutcome::Failed(ErrorKind::Malformed),
        };
        let ttfb = Some(answer.head_at.saturating_duration_since(self.intended));
        End { ttfb, body_bytes: answer.body_bytes, ..self.ended(outcome, answer.end_at) }
    }

    fn ended(&self, outcome: TryOutcome, at: Instant) -> End {
        let latency = at.saturating_duration_since(self.intended);
        let served_after = at.saturating_duration_since(self.first_asked);
        End { outcome, latency, ttfb: None, served_after, body_bytes: 0 }
    }
}
