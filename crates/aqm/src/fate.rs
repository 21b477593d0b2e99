//! A packet at a queue, and the decision about it.

/// A packet that arrives at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Keyed hash of the flow's identity ([`crate::FlowHasher`]): uniform, and unknown to senders.
    pub flow: u64,
    /// Bytes on the wire.
    pub bytes: u32,
    /// True if its sender understands marks (ECN-capable transport).
    pub is_markable: bool,
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is queued as it is.
    Keep,
    /// It is queued with a congestion mark.
    Mark,
    /// It is dropped.
    Drop,
}
