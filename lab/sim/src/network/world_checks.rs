//! Conditions that must hold in every network: packets are conserved, buffers keep their bounds, senders stay
//! in order.

use super::world::Network;
use crate::engine::Check;

/// O(1): what the event touched, and the sums.
pub(super) const AFTER_EVERY_EVENT: &[Check<Network>] = &[
    ("the touched link conserves packets and keeps its bound", |network| {
        network.touched_link.map_or(Ok(()), |link| network.links[link.0 as usize].check())
    }),
    ("the touched flow is in order", |network| {
        network.touched_flow.and_then(|flow| network.flows.get(flow)).map_or(Ok(()), |flow| flow.check())
    }),
    ("sent = delivered + dropped + held", sums),
];

impl Network {
    /// Checks everything, in every build: conservation over all links and the agreement of all books.
    /// O(links).
    ///
    /// # Errors
    /// With the numbers that do not agree.
    pub fn check(&self) -> Result<(), String> {
        for (index, link) in self.links.iter().enumerate() {
            link.check().map_err(|problem| format!("link {index}: {problem}"))?;
        }
        let held: u64 = self.links.iter().map(|link| link.held() as u64).sum();
        if held != self.books.held {
            return Err(format!("links hold {held} packets, the books say {}", self.books.held));
        }
        sums(self)
    }
}

fn sums(network: &Network) -> Result<(), String> {
    let books = network.books;
    if books.sent == books.delivered + books.dropped + books.held {
        Ok(())
    } else {
        Err(format!("{books:?}"))
    }
}
