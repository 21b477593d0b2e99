//! Decisions for one service, as its workers carry them out.

use flashweir_admission::gapping::Restriction;
use flashweir_admission::ladder;
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::Arc;

/// The key of all clients that are no nodes in front. A hash is never this but by a chance of 2⁻⁶⁴.
pub(crate) const EVERYBODY_ELSE: u64 = 0;

/// Orders of one service, for all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    /// Requests that the ladder discards.
    pub(crate) ladder: ladder::Orders,
    /// Requests of this rank and of less important ones are limited, or would be.
    pub(crate) from_rank: u8,
    /// By worker: what the upstream asks for.
    pub(crate) restrictions: Box<[Option<Restriction>]>,
    /// By key.
    pub(crate) senders: Arc<HashMap<u64, SenderOrders>>,
}

/// Orders about one node in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderOrders {
    /// The field that its responses carry.
    pub(crate) field: Option<HeaderValue>,
    /// Part of its requests that is beyond its share, thousandths.
    pub(crate) beyond_share_milli: u16,
}

impl Orders {
    /// Returns whether there is nothing to do.
    pub(crate) fn are_none(&self) -> bool {
        self.ladder == ladder::Orders::default()
            && self.restrictions.iter().all(Option::is_none)
            && self.senders.is_empty()
    }
}
