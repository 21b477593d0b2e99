//! What happens at the gate and behind it.

use super::ClassModel;
use super::event::{Event, Happened};
use super::server::Offered;
use super::slab::Id;
use super::world::{Answer, Place, RunError, World};
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
        arrived.received = now;
        let (asked, cell, (person, request)) =
            (arrived.asked, arrived.cell, (arrived.person, arrived.request));
        let decided = self.gate.decide(now, &asked);
        self.starvation.decided(asked.class, decided.is_ok());
        if let Err(refusal) = decided {
            self.books.shed(cell, refusal.reason);
            self.happened(now, Happened::Shed, attempt.number());
            return self.send_answer(now, attempt, Answer::Shed(refusal));
        }
        self.books.admit(cell);
        self.happened(now, Happened::Admitted, attempt.number());
        if self.server.is_down() {
            self.gate.ended(&asked, false);
            return self.send_answer(now, attempt, Answer::Broken);
        }
        let class = usize::from(asked.class);
        let ClassModel { work, sizes, .. } = &self.scenario.classes[class];
        let draws = || self.work[class].fork(person).fork(request);
        let work = work.draw(draws, || sizes.bytes(self.scenario.seed, asked.document));
        match self.server.offer(now, attempt, work) {
            Offered::Accepted(turn) => {
                if let Some(accepted) = self.tries.get_mut(attempt) {
                    accepted.place = Place::AtServer(turn);
                }
                self.arm_server()
            }
            Offered::Refused(at) => {
                self.books.refuse_at_server(cell);
                self.gate.ended(&asked, false);
                self.send_answer(at, attempt, Answer::ServerBusy)
            }
            Offered::Dropped => {
                self.gate.ended(&asked, false);
                self.say_nothing(attempt);
                Ok(())
            }
            Offered::Reset => {
                self.gate.ended(&asked, false);
                self.send_answer(now, attempt, Answer::Broken)
            }
        }
    }

    /// The gate learns that a client has gone, and tells the server.
    pub(super) fn depart(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        let Some(left) = self.tries.get_mut(attempt) else { return Ok(()) };
        let Place::AtServer(turn) = left.place else { return Ok(()) };
        let asked = left.asked;
        self.happened(now, Happened::Departed, attempt.number());
        self.gate.ended(&asked, false);
        if self.server.depart(now, turn) {
            self.tries.remove(attempt);
        } else if let Some(left) = self.tries.get_mut(attempt) {
            left.place = Place::Deserted;
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
            if done.place == Place::Deserted {
                self.tries.remove(attempt);
                continue;
            }
            let asked = done.asked;
            self.gate.ended(&asked, true);
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
            if lost.place == Place::Deserted {
                self.tries.remove(attempt);
                continue;
            }
            let asked = lost.asked;
            self.gate.ended(&asked, false);
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
