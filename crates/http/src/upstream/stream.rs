//! A connection to an upstream that has switched protocols.

use super::connect::UpstreamIo;
use super::shared::InFlight;
use super::slot::Slot;
use bytes::Bytes;
use std::fmt;

/// Stream that is left of an exchange whose response was 101: bytes both ways. Counts as a connection and
/// as a request in flight until it is dropped.
pub struct UpstreamStream {
    pub(crate) io: UpstreamIo,
    /// Bytes that came behind the response.
    pub(crate) received: Bytes,
    pub(super) _counted: (Slot, InFlight),
}

impl fmt::Debug for UpstreamStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamStream").field("received", &self.received.len()).finish_non_exhaustive()
    }
}
