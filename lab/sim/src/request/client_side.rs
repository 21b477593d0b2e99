//! Events on the clients' side of the network.

use super::books::{End, Times};
use super::clients::{Doing, Visitor};
use super::event::{Event, Happened};
use super::gate::Acknowledged;
use super::signs::ASSET_AFTER;
use super::slab::Id;
use super::world::{Answer, RunError, Try, TryState, World};
use flashweir_core::{Duration, Instant};
use flashweir_workload::people::Failure;

/// Result of a try, which decides the person's next step.
enum Then {
    Served,
    /// The person may try again, and was asked to wait for this time, seconds.
    Failed(Failure, Option<u16>),
    Left,
}

impl World<'_> {
    /// The next person of the schedule comes and asks.
    pub(super) fn come(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(arrival) = self.take_coming()? else { return Ok(()) };
        self.happened(now, Happened::Came, arrival.ordinal);
        let class = &self.scenario.classes[usize::from(arrival.class)];
        let mut person = class.habits.person(self.scenario.seed, arrival.class, arrival.person);
        // Every session has at least one request.
        let Some(request) = person.next_request() else { return Ok(()) };
        let visitor = Visitor {
            document: person.document(request, &class.popularity),
            leaves_at: person.patience().map(|patience| now + patience),
            person,
            number: arrival.person,
            class: arrival.class,
            doing: Doing::Thinking,
            request: request.0,
            tries: 0,
            first_asked: now,
            intended: now,
            cell: super::books::Cell::NOWHERE,
            attempt: Id::NONE,
        };
        let id = self.visitors.insert(visitor).ok_or_else(|| self.too_many())?;
        self.begin_try(now, id)
    }

    /// A visitor has waited, or thought, enough.
    pub(super) fn ask(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(visitor) = self.visitors.get_mut(id) else { return Ok(()) };
        if visitor.doing == Doing::Thinking {
            visitor.first_asked = now;
            visitor.leaves_at = visitor.person.patience().map(|patience| now + patience);
            visitor.tries = 0;
        }
        let number = visitor.number;
        self.happened(now, Happened::Asked, number);
        self.begin_try(now, id)
    }

    /// A try, from its entry in the books to its way to the gate.
    fn begin_try(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(visitor) = self.visitors.get_mut(id) else { return Ok(()) };
        let class = &self.scenario.classes[usize::from(visitor.class)];
        visitor.tries += 1;
        visitor.intended = now;
        visitor.doing = Doing::Asking;
        visitor.cell = self.books.offer(now, visitor.class, visitor.tries == 1);
        self.asking += 1;
        let mut asked = self.gate.classify(visitor.class, class.host, visitor.number, visitor.document);
        if let Some(signs) = &class.signs {
            asked.signs = signs.of(visitor.class, visitor.number, visitor.request, visitor.document);
        }
        let attempt = Try {
            visitor: id,
            asked,
            person: visitor.number,
            request: visitor.request,
            cell: visitor.cell,
            sent: now,
            is_cold: false,
            flow: None,
            state: TryState::ToGate,
            permit: None,
            delivery: None,
        };
        let Some(attempt) = self.tries.insert(attempt) else { return Err(self.too_many()) };
        visitor.attempt = attempt;
        // A visitor that loses patience by the client's time limit needs no time limit.
        let times_out = now + class.timeout;
        match visitor.leaves_at.filter(|leaves_at| *leaves_at <= times_out) {
            Some(leaves_at) => self.queue.schedule(leaves_at.max(now), Event::LosePatience(id))?,
            None => {
                let class = visitor.class;
                let visitors = &self.visitors;
                let limits = &mut self.time_limits[usize::from(class)];
                if let Some(at) = limits.begin(times_out, id, |id| visitors.contains(id)) {
                    self.queue.schedule(at, Event::TimeLimit(class))?;
                }
            }
        }
        self.send_request(now, attempt)
    }

    /// An answer reaches its visitor, if the visitor is still there.
    pub(super) fn answer(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        let Some(Try { visitor, asked, sent, state: TryState::ToClient(answer), delivery, .. }) =
            self.tries.remove(attempt)
        else {
            return Ok(());
        };
        let is_cut = self.troubles.link_is_cut();
        let has_all = !is_cut && self.visitors.contains(visitor);
        self.gate.deliver(&asked, delivery, has_all);
        if is_cut {
            self.happened(now, Happened::Swallowed, attempt.number());
        }
        if !has_all {
            return Ok(());
        }
        self.happened(now, Happened::Answered, attempt.number());
        if answer == Answer::Whole {
            let class = &self.scenario.classes[usize::from(asked.class)];
            // The gate hears the acknowledgement when it has come back; it is reported now, with the delay
            // added.
            let delay = self.one_way_delay;
            self.gate.observe(now, &asked, sent, || Acknowledged {
                bytes: class.sizes.bytes(self.scenario.seed, asked.document),
                handed: Instant::from_nanos(now.as_nanos() - delay.as_nanos() as u64),
                at: now + delay,
                rate_bytes_per_s: None,
            });
        }
        self.hear(now, visitor, answer)
    }

    /// A person hears an answer.
    pub(super) fn hear(&mut self, now: Instant, visitor: Id, answer: Answer) -> Result<(), RunError> {
        let (end, then) = match answer {
            Answer::Whole => (End::Completed, Then::Served),
            Answer::Shed(refusal) => (End::Refused, Then::Failed(Failure::Refused, refusal.retry_after_s)),
            Answer::ServerBusy => (End::Refused, Then::Failed(Failure::Refused, None)),
            Answer::Broken => (End::Broken, Then::Failed(Failure::Broken, None)),
        };
        self.settle(now, visitor, end, then)
    }

    /// A person's patience is over: they leave for good.
    pub(super) fn lose_patience(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(visitor) = self.visitors.get(id) else { return Ok(()) };
        let (number, attempt) = (visitor.number, visitor.attempt);
        self.happened(now, Happened::LostPatience, number);
        self.leave_try(now, attempt)?;
        self.settle(now, id, End::Abandoned, Then::Left)
    }

    /// The clients of tries that took too long give them up.
    pub(super) fn meet_time_limits(&mut self, now: Instant, class: u16) -> Result<(), RunError> {
        loop {
            let visitors = &self.visitors;
            let limits = &mut self.time_limits[usize::from(class)];
            let Some(id) = limits.next_over(now, |id| visitors.contains(id)) else { break };
            let Some(visitor) = self.visitors.get(id) else { continue };
            let (number, attempt) = (visitor.number, visitor.attempt);
            self.happened(now, Happened::TimedOut, number);
            self.leave_try(now, attempt)?;
            self.settle(now, id, End::TimedOut, Then::Failed(Failure::TimedOut, None))?;
        }
        if let Some(next) = self.time_limits[usize::from(class)].arm() {
            self.queue.schedule(next, Event::TimeLimit(class))?;
        }
        Ok(())
    }

    /// A try has ended; the person decides what to do next.
    fn settle(&mut self, now: Instant, id: Id, end: End, then: Then) -> Result<(), RunError> {
        let Some(visitor) = self.visitors.get(id) else { return Ok(()) };
        let times = Times { intended: visitor.intended, first_asked: visitor.first_asked, ended: now };
        self.books.settle(visitor.cell, end, times);
        self.asking -= 1;
        // References to this try find no visitor from now on.
        let Some(id) = self.visitors.renew(id) else { return Ok(()) };
        let Some(visitor) = self.visitors.get_mut(id) else { return Ok(()) };
        let served = matches!(then, Then::Served);
        if let Then::Failed(why, asked_s) = then {
            let asked = asked_s.map(|seconds| Duration::from_secs(seconds.into()));
            if let Some(wait) = visitor.person.retry_after(why, visitor.tries, asked) {
                let again_at = now + wait;
                if visitor.leaves_at.is_none_or(|leaves_at| leaves_at > again_at) && again_at < self.ends_at {
                    visitor.doing = Doing::WaitingToRetry;
                    return Ok(self.queue.schedule(again_at, Event::Ask(id))?);
                }
            }
        }
        let class = &self.scenario.classes[usize::from(visitor.class)];
        if served || class.goes_on_unserved {
            let is_asset = class.signs.as_ref().is_some_and(|signs| signs.is_asset(visitor.request + 1));
            let asks_at = now + if is_asset { ASSET_AFTER } else { visitor.person.think() };
            if let Some(request) = visitor.person.next_request().filter(|_| asks_at < self.ends_at) {
                visitor.request = request.0;
                visitor.document = visitor.person.document(request, &class.popularity);
                visitor.doing = Doing::Thinking;
                return Ok(self.queue.schedule(asks_at, Event::Ask(id))?);
            }
        }
        self.visitors.remove(id);
        Ok(())
    }
}
