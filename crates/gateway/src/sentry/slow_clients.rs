//! Clients that take their responses slowly: their places at the origin go to others.
//!
//! hyper asks for the next part of a body when the client has taken enough of what came before. A part that is not
//! asked for within [`PATIENCE`] has a client that is slower than the origin; all there is has long left the origin's
//! processor, or waits in its socket for us. The response goes on as before, only its place is free.

use super::place::Place;
use flashweir_admission::sentry::Ending;
use flashweir_core::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Longer than a round trip to most clients, so that a window of TCP may fill and empty; short against a download.
const PATIENCE: Duration = Duration::from_millis(100);

/// A place that is given back early if the client holds its response up. Owned by the response's body.
#[derive(Debug)]
pub(crate) struct Yielding {
    place: RefCell<Option<Place>>,
    ending: Ending,
    /// When the client was last handed a part, unless it has asked for the next one since.
    handed_at: Cell<Option<Instant>>,
}

/// The responses of one worker whose clients may be slow; at most as many as are in flight.
#[derive(Debug, Default)]
pub(crate) struct SlowClients {
    watched: Vec<Weak<Yielding>>,
}

impl Yielding {
    /// `ending` is what is told of a place that is given back early: the origin did its work.
    pub(crate) fn new(place: Place, ending: Ending) -> Rc<Self> {
        Rc::new(Self { place: RefCell::new(Some(place)), ending, handed_at: Cell::new(None) })
    }

    /// The client got a part and has to take it.
    pub(crate) fn handed(&self, now: Instant) {
        self.handed_at.set(Some(now));
    }

    /// The client is ready for more: from here on it is the origin that is waited for.
    pub(crate) fn asked(&self) {
        self.handed_at.set(None);
    }

    /// The response is over; nothing happens where its place is gone already.
    pub(crate) fn end(&self, ending: Ending) {
        let place = self.place.borrow_mut().take();
        if let Some(place) = place {
            place.end(ending);
        }
    }
}

impl SlowClients {
    /// Nobody is watched: no sweep is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Watches a response until it ends or its place is free.
    pub(crate) fn watch(&mut self, response: &Rc<Yielding>) {
        self.watched.push(Rc::downgrade(response));
    }

    /// Takes the places of those who were too slow. O(watched).
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.watched.retain(|response| {
            let Some(response) = response.upgrade() else { return false };
            let is_slow = response.handed_at.get().is_some_and(|at| now.saturating_since(at) > PATIENCE);
            if is_slow {
                response.end(response.ending);
            }
            !is_slow
        });
    }
}
