//! Events at the gate and behind it.

use super::ClassModel;
use super::event::{Event, Happened};
use super::gate::{Decided, Refusal, ReleasedTry};
use super::server::Offered;
use super::slab::Id;
use super::world::{Answer, RunError, TryState, World};
use flashweir_admission::pipeline::{FailureSource, OriginReport, Permit, RequestOutcome, Ticket};
use flashweir_core::Instant;

impl World<'_> {
    /// A try reaches the gate, which decides, and the server, if it may.
    pub(super) fn arrive(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        // Packets that come here have come through.
        if self.packets.is_none() && self.troubles.link_is_cut() {
            self.happened(now, Happened::Swallowed, attempt.number());
            self.tries.remove(attempt);
            return Ok(());
        }
        let Some(arrived) = self.tries.get_mut(attempt) else { return Ok(()) };
        arrived.sent = now;
        let asked = arrived.asked;
        match self.gate.decide(now, attempt, &asked) {
            Decided::Admitted(permit) => self.admit(now, attempt, permit),
            Decided::Refused(refusal) => self.refuse(now, attempt, refusal),
            Decided::Held(ticket) => {
                self.hold(now, attempt, ticket);
                Ok(())
            }
            Decided::HeldInsteadOf(ticket, other, refusal) => {
                self.hold(now, attempt, ticket);
                self.refuse(now, other, refusal)
            }
        }
    }

    /// Queued tries go on where there is room, or are refused when they waited too long.
    pub(super) fn release_held(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(released) = self.gate.release(now) {
            match released {
                ReleasedTry::Admitted(attempt, permit) => self.admit(now, attempt, permit)?,
                ReleasedTry::Refused(attempt, refusal) => self.refuse(now, attempt, refusal)?,
            }
        }
        while let Some((at, worker)) = self.gate.next_call(now) {
            self.queue.schedule(at, Event::CallWorker(worker))?;
        }
        Ok(())
    }

    fn hold(&mut self, now: Instant, attempt: Id, ticket: Ticket) {
        self.happened(now, Happened::Held, attempt.number());
        if let Some(held) = self.tries.get_mut(attempt) {
            held.state = TryState::Held(ticket);
            self.starvation.held(held.asked.class);
        }
    }

    fn refuse(&mut self, now: Instant, attempt: Id, refusal: Refusal) -> Result<(), RunError> {
        let Some(refused) = self.tries.get(attempt) else { return Ok(()) };
        let was_held = matches!(refused.state, TryState::Held(_));
        self.starvation.decided(refused.asked.class, was_held, false);
        self.books.shed(refused.cell, refusal.reason);
        if let Some(calm) = &mut self.calm {
            calm.refused(now, refused.asked.class, refusal.reason);
        }
        self.happened(now, Happened::Shed, attempt.number());
        self.send_answer(now, attempt, Answer::Shed(refusal))
    }

    /// A try goes to the server.
    fn admit(&mut self, now: Instant, attempt: Id, permit: Permit) -> Result<(), RunError> {
        let Some(admitted) = self.tries.get_mut(attempt) else { return Ok(()) };
        admitted.permit = Some(permit);
        admitted.sent = now;
        let was_held = matches!(admitted.state, TryState::Held(_));
        let (asked, cell, (person, request)) =
            (admitted.asked, admitted.cell, (admitted.person, admitted.request));
        self.starvation.decided(asked.class, was_held, true);
        self.books.admit(cell);
        self.happened(now, Happened::Admitted, attempt.number());
        if self.server.is_down() {
            self.finish(now, attempt, RequestOutcome::Failed(FailureSource::Origin));
            return self.send_answer(now, attempt, Answer::Broken);
        }
        let class = usize::from(asked.class);
        let ClassModel { wait, warm_up, work, sizes, .. } = &self.scenario.classes[class];
        let draws = || self.work[class].fork(person).fork(request);
        let bytes = || sizes.bytes(self.scenario.seed, asked.document);
        let (wait, work) = (wait.draw(|| draws().fork(WAIT), bytes), work.draw(draws, bytes));
        let started = warm_up.filter(|warm_up| now >= warm_up.from);
        let cold = started.filter(|warm_up| self.sent[class] < warm_up.requests);
        self.sent[class] += u64::from(started.is_some());
        let wait = cold.map_or(wait, |warm_up| wait + warm_up.wait);
        match self.server.offer_after(now, attempt, wait, work) {
            Offered::Accepted(turn) => {
                if let Some(accepted) = self.tries.get_mut(attempt) {
                    accepted.state = TryState::AtServer(turn);
                    accepted.is_cold = cold.is_some();
                }
                self.arm_server()
            }
            Offered::Refused(at) => {
                self.books.refuse_at_server(cell);
                self.finish(now, attempt, RequestOutcome::Failed(FailureSource::Origin));
                self.send_answer(at, attempt, Answer::ServerBusy)
            }
            Offered::Dropped => {
                self.finish(now, attempt, RequestOutcome::Failed(FailureSource::Origin));
                self.say_nothing(attempt);
                Ok(())
            }
            Offered::Reset => {
                self.finish(now, attempt, RequestOutcome::Failed(FailureSource::Origin));
                self.send_answer(now, attempt, Answer::Broken)
            }
        }
    }

    /// The gate hears how an admitted try ended.
    fn finish(&mut self, now: Instant, attempt: Id, outcome: RequestOutcome) {
        let Some(ended) = self.tries.get_mut(attempt) else { return };
        let asked = ended.asked;
        if let Some(permit) = ended.permit.take() {
            if let Some(calm) = &mut self.calm {
                let is_completed = matches!(outcome, RequestOutcome::Completed(_));
                calm.ended((asked.class, ended.is_cold), ended.sent, now, is_completed);
            }
            ended.delivery = self.gate.finish(now, &asked, permit, outcome);
        }
    }

    /// The gate learns that a client has gone, and informs the server.
    pub(super) fn depart(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        let Some(left) = self.tries.get_mut(attempt) else { return Ok(()) };
        let state = left.state;
        let asked = left.asked;
        if let TryState::Held(ticket) = state {
            self.happened(now, Happened::LeftHold, attempt.number());
            self.gate.leave(now, &asked, ticket);
            self.tries.remove(attempt);
            return Ok(());
        }
        let TryState::AtServer(turn) = state else { return Ok(()) };
        self.happened(now, Happened::Departed, attempt.number());
        self.finish(now, attempt, RequestOutcome::Abandoned);
        if self.server.depart(now, turn) {
            self.tries.remove(attempt);
        } else if let Some(left) = self.tries.get_mut(attempt) {
            left.state = TryState::Deserted;
        }
        self.arm_server()
    }

    /// Everything the server has finished by now goes back to its clients.
    pub(super) fn serve(&mut self, now: Instant) -> Result<(), RunError> {
        if self.serve_at == Some(now) {
            self.serve_at = None;
        }
        while let Some(attempt) = self.server.finish_next(now) {
            self.happened(now, Happened::Served, attempt.number());
            let Some(done) = self.tries.get(attempt) else { continue };
            if done.state == TryState::Deserted {
                self.tries.remove(attempt);
                continue;
            }
            self.finish(now, attempt, RequestOutcome::Completed(OriginReport::default()));
            self.send_answer(now, attempt, Answer::Whole)?;
        }
        self.arm_server()
    }

    /// The server goes down with everything in it, or comes up again.
    pub(super) fn follow_crash(&mut self, now: Instant) -> Result<(), RunError> {
        let is_down = self.troubles.server_is_down();
        if is_down == self.server.is_down() {
            return Ok(());
        }
        if !is_down {
            self.server.restart(now);
            return Ok(());
        }
        for attempt in self.server.crash(now) {
            let Some(lost) = self.tries.get(attempt) else { continue };
            if lost.state == TryState::Deserted {
                self.tries.remove(attempt);
                continue;
            }
            self.finish(now, attempt, RequestOutcome::Failed(FailureSource::Origin));
            self.send_answer(now, attempt, Answer::Broken)?;
        }
        Ok(())
    }

    /// Sees to it that an event comes when the server is next done. One that comes too early does nothing.
    pub(super) fn arm_server(&mut self) -> Result<(), RunError> {
        let Some(done_at) = self.server.next_done_at() else { return Ok(()) };
        if self.serve_at.is_some_and(|serve_at| serve_at <= done_at) {
            return Ok(());
        }
        self.serve_at = Some(done_at);
        Ok(self.queue.schedule(done_at, Event::Serve)?)
    }
}

/// Names the fork of a request's generator that its wait is drawn from: "wait" in ASCII.
const WAIT: u64 = 0x7761_6974 << 32;
