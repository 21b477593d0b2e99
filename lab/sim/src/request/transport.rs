//! Transport of requests and answers: a delay, or packets.

use super::event::Event;
use super::packets::REFUSAL_BYTES;
use super::slab::Id;
use super::world::{Answer, RunError, TryState, World};
use flashweir_core::Instant;

impl World<'_> {
    /// A try sets out for the gate.
    pub(super) fn send_request(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        if let Some((described, packets)) = &mut self.packets {
            let Some(sent) = self.tries.get_mut(attempt) else { return Ok(()) };
            let who = (sent.asked.class, sent.person);
            sent.flow = Some(packets.open(now, self.scenario, described, who, attempt)?);
            return Ok(());
        }
        if self.one_way_delay.is_zero() {
            return self.arrive(now, attempt);
        }
        Ok(self.queue.schedule(now + self.one_way_delay, Event::Arrive(attempt))?)
    }

    /// An answer is sent at `at`, now or later.
    pub(super) fn send_answer(&mut self, at: Instant, attempt: Id, answer: Answer) -> Result<(), RunError> {
        let Some(answered) = self.tries.get_mut(attempt) else { return Ok(()) };
        answered.state = TryState::ToClient(answer);
        if let Some((_, packets)) = &mut self.packets {
            let Some(flow) = answered.flow else { return Ok(()) };
            let asked = answered.asked;
            let bytes = match answer {
                Answer::Broken => return Ok(packets.reset(at, flow)?),
                Answer::Shed(_) | Answer::ServerBusy => REFUSAL_BYTES,
                Answer::Whole => {
                    let class = &self.scenario.classes[usize::from(asked.class)];
                    class.sizes.bytes(self.scenario.seed, asked.document)
                }
            };
            return Ok(packets.respond(at, flow, bytes)?);
        }
        if at == self.queue.now() && self.one_way_delay.is_zero() {
            return self.answer(at, attempt);
        }
        Ok(self.queue.schedule(at + self.one_way_delay, Event::Answer(attempt))?)
    }

    /// The server dropped a try: its client will hear nothing.
    pub(super) fn say_nothing(&mut self, attempt: Id) {
        match self.tries.get_mut(attempt) {
            Some(dropped) if self.packets.is_some() => dropped.state = TryState::Dropped,
            _ => drop(self.tries.remove(attempt)),
        }
    }

    /// The client hangs up; the gate will hear of it, if the try ever got there.
    pub(super) fn leave_try(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        let Some(left) = self.tries.get(attempt) else { return Ok(()) };
        if let Some((_, packets)) = &mut self.packets {
            return Ok(left.flow.map_or(Ok(()), |flow| packets.abandon(now, flow))?);
        }
        if self.one_way_delay.is_zero() {
            return self.depart(now, attempt);
        }
        Ok(self.queue.schedule(now + self.one_way_delay, Event::Depart(attempt))?)
    }
}
