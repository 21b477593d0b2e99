//! A place among the requests at the origin.

use super::candidate::Opinion;
use super::stage::Stage;
use flashweir_admission::sentry::{Ending, Paused, Permit};
use flashweir_core::Instant;
use std::mem;
use std::rc::Rc;

/// One request's place. It is given back by [`end`](Self::end), and at the latest when dropped, as withdrawn.
///
/// What counts is the origin's work. A place is held from the moment the request is sent until the last byte of the
/// response has come from the origin, however long the client then takes for it: the limit is on what the origin does
/// at once, and a place kept for a slow client would be one that nobody works for. For the same reason a tunnel (101)
/// and an event stream, which last without being worked on, give their places back at the head, and a body whose next
/// part the client does not take, or does not send, gives it back soon ([`Yielding`](super::Yielding)).
#[derive(Debug)]
pub(crate) struct Place {
    held: Held,
    /// The candidate policy, where there is one, is told of the end.
    opinion: Option<Opinion>,
}

#[derive(Debug)]
enum Held {
    AtOrigin(Rc<Stage>, Permit),
    /// Left for others while the client is waited for.
    Paused(Rc<Stage>, Paused),
    /// Given back, or never needed: the request's class is exempt.
    Nothing,
}

impl Place {
    pub(super) fn new(stage: Rc<Stage>, permit: Permit) -> Self {
        Self { held: Held::AtOrigin(stage, permit), opinion: None }
    }

    /// The place, if it needs one, of a request that is sent now, and what the candidate policy makes of it, if there is
    /// one.
    pub(crate) fn compared(now: Instant, place: Option<Self>, opinion: Option<Opinion>) -> Option<Self> {
        let Some(mut opinion) = opinion else { return place };
        opinion.live_let_in(now);
        let mut place = place.unwrap_or(Self { held: Held::Nothing, opinion: None });
        place.opinion = Some(opinion);
        Some(place)
    }

    /// The client is waited for: the place is others' until [`resume`](Self::resume).
    pub(super) fn pause(&mut self) {
        self.held = match mem::replace(&mut self.held, Held::Nothing) {
            Held::AtOrigin(stage, permit) => {
                let paused = stage.pause(permit);
                Held::Paused(stage, paused)
            }
            other => other,
        };
    }

    /// The origin has something to do again.
    pub(super) fn resume(&mut self) {
        self.held = match mem::replace(&mut self.held, Held::Nothing) {
            Held::Paused(stage, paused) => {
                let permit = stage.resume(paused);
                Held::AtOrigin(stage, permit)
            }
            other => other,
        };
    }

    /// The origin is done with it.
    pub(crate) fn end(mut self, ending: Ending) {
        // What was answered while the client was waited for was worked on.
        if ending.completed {
            self.resume();
        }
        self.give_back(ending);
    }

    fn give_back(&mut self, ending: Ending) {
        if let Held::AtOrigin(stage, permit) = mem::replace(&mut self.held, Held::Nothing) {
            stage.end(permit, ending);
        }
        if let Some(opinion) = self.opinion.take() {
            opinion.live_ended(ending.completed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_back(Ending::WITHDRAWN);
    }
}
