//! A place among the requests at the origin.

use super::stage::Stage;
use flashweir_admission::sentry::{Ending, Permit};
use std::rc::Rc;

/// One request's place. It is given back by [`end`](Self::end), and at the latest when dropped, as failed.
///
/// What counts is the origin's work. A place is held from the moment the request is sent until the last byte of the
/// response has come from the origin, however long the client then takes for it: the limit is on what the origin does
/// at once, and a place kept for a slow client would be one that nobody works for. For the same reason a tunnel (101)
/// and an event stream, which last without being worked on, give their places back at the head, and a body whose next
/// part the client does not take gives it back soon ([`Yielding`](super::Yielding)).
#[derive(Debug)]
pub(crate) struct Place {
    stage: Rc<Stage>,
    permit: Option<Permit>,
}

impl Place {
    pub(super) fn new(stage: Rc<Stage>, permit: Permit) -> Self {
        Self { stage, permit: Some(permit) }
    }

    /// The origin is done with it.
    pub(crate) fn end(mut self, ending: Ending) {
        self.give_back(ending);
    }

    fn give_back(&mut self, ending: Ending) {
        if let Some(permit) = self.permit.take() {
            self.stage.end(permit, ending);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.give_back(Ending::default());
    }
}
