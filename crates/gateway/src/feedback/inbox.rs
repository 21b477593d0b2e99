//! Datagrams of upstreams, kept by service until its planner takes them.

use flashweir_core::limits::FEEDBACK_DATAGRAMS;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// One service's datagrams that its planner has not seen. At most [`FEEDBACK_DATAGRAMS`].
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<UpstreamDatagram>>);

/// Content of a datagram about one upstream, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamDatagram {
    pub(crate) upstream: usize,
    /// The address that its server was signed for.
    pub(crate) address: SocketAddr,
    pub(crate) field: Box<[u8]>,
}

impl Inbox {
    /// Returns whether there was room.
    pub(super) fn push(&self, datagram: UpstreamDatagram) -> bool {
        // A writer that panicked leaves whole datagrams.
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < FEEDBACK_DATAGRAMS;
        if has_room {
            waiting.push(datagram);
        }
        has_room
    }

    /// The datagrams that arrived since the last call.
    pub(crate) fn take(&self) -> Vec<UpstreamDatagram> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_inbox_takes_no_more_until_it_is_emptied() {
        let inbox = Inbox::default();
        let datagram = UpstreamDatagram {
            upstream: 0,
            address: "10.0.0.5:80".parse().unwrap(),
            field: (*b":AAAA:").into(),
        };
        let taken = (0..FEEDBACK_DATAGRAMS + 3).filter(|_| inbox.push(datagram.clone())).count();
        assert_eq!((taken, inbox.take().len()), (FEEDBACK_DATAGRAMS, FEEDBACK_DATAGRAMS));
        assert!(inbox.push(datagram));
    }
}
