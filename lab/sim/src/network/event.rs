//! Everything that can happen in a network.

use super::connection::{End, TimerKind};
use super::datagrams::SourceId;
use super::feedback::FeedbackId;
use super::packet::FlowId;
use super::record::FlowRecord;
use super::topology::LinkId;

/// Events inside a network. Sixteen bytes: a packet on the wire stays with its link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The first packet on the wire arrives at the far end.
    Arrive { link: LinkId },
    /// The transmitter can take the next waiting packet.
    LinkFree { link: LinkId },
    /// A timer may have fired.
    Timer { flow: FlowId, end: End, kind: TimerKind },
    /// A client begins.
    Start { flow: FlowId },
    /// A server answers; how much is kept with the flow.
    Respond { flow: FlowId },
    /// A client leaves.
    Abandon { flow: FlowId },
    /// A server's end goes away.
    Reset { flow: FlowId },
    /// A constant-rate source sends.
    Datagram { source: SourceId },
    /// A source with feedback sends.
    Reported { source: FeedbackId },
    /// The owner asked to be called.
    Wake { token: u64 },
}

impl Event {
    /// Input to the hash of a run: the kind, and the link, flow, source or token it happened to.
    pub(super) fn fingerprint(self) -> (u8, u64) {
        match self {
            Self::Arrive { link } => (0, u64::from(link.0)),
            Self::LinkFree { link } => (1, u64::from(link.0)),
            Self::Timer { flow, end, kind } => (2 + 2 * end as u8 + kind as u8, flow.as_u64()),
            Self::Start { flow } => (6, flow.as_u64()),
            Self::Respond { flow } => (7, flow.as_u64()),
            Self::Abandon { flow } => (8, flow.as_u64()),
            Self::Datagram { source } => (9, u64::from(source.0)),
            Self::Wake { token } => (10, token),
            Self::Reset { flow } => (11, flow.as_u64()),
            Self::Reported { source } => (12, u64::from(source.0)),
        }
    }
}

/// Events reported to the owner of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A server has a whole request whose answer is [`super::Response::Decided`]: call
    /// [`super::Network::respond`] when it is known.
    RequestReceived {
        /// The flow of the request.
        flow: FlowId,
        /// The owner's own name for the flow.
        token: u64,
    },
    /// A flow ended; its record says how. Each flow ends once.
    Ended(FlowRecord),
    /// The server's end of a flow that was completed or abandoned knows of it, by the last acknowledgement or
    /// a reset, or has given up hope of either. Nothing is left of the flow.
    Closed(FlowRecord),
    /// A time the owner asked for has come.
    Woken {
        /// Token that the owner gave with it.
        token: u64,
    },
}
