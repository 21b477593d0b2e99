//! One worker's stored responses: found without a lock, bounded in bytes, the least recently used going
//! first.

use crate::identity_hash::BuildIdentity;
use crate::{Key, Stored};
use flashweir_core::limits::CACHE_VARIANTS;
use flashweir_http1::head::FieldsView;
use lru::LruCache;
use std::sync::Arc;

/// Responses of one worker. Several workers may hold the same one: its bytes are in memory once and count for
/// each.
#[derive(Debug)]
pub struct Store {
    documents: LruCache<u64, Vec<Arc<Stored>>, BuildIdentity>,
    bytes: usize,
    bytes_max: usize,
    evicted: u64,
}

/// Result of inserting a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is stored.
    Stored,
    /// It alone is larger than the store.
    TooLarge,
}

impl Store {
    /// An empty store of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let documents = LruCache::unbounded_with_hasher(BuildIdentity::default());
        Self { documents, bytes: 0, bytes_max, evicted: 0 }
    }

    /// Another bound; evicts what is beyond it.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.make_room(0);
    }

    /// The response to a request, which is then the one used last. Of several the one that came last. One
    /// look-up and at most [`CACHE_VARIANTS`] comparisons.
    pub fn find<'a>(
        &mut self,
        hash: u64,
        key: &Key<'_>,
        service: u64,
        request: impl Into<FieldsView<'a>>,
    ) -> Option<&Arc<Stored>> {
        let request = request.into();
        let variants = self.documents.get_mut(&hash)?;
        // A response that another worker purged or replaced is removed at the first look.
        if variants.iter().any(|stored| stored.is_invalid()) {
            let before = total(variants);
            variants.retain(|stored| !stored.is_invalid());
            self.bytes -= before - total(variants);
        }
        let variants = self.documents.peek(&hash)?;
        variants.iter().rev().find(|stored| stored.answers(key, service, request))
    }

    /// Puts a response in, in place of one for the same requests; evicts what it takes the room of.
    pub fn insert(&mut self, hash: u64, stored: Arc<Stored>) -> Inserted {
        let bytes = stored.bytes();
        if bytes > self.bytes_max {
            return Inserted::TooLarge;
        }
        let variants = self.documents.get_or_insert_mut(hash, Vec::new);
        let before = total(variants);
        variants.retain(|other| !stored.replaces(other) && !other.is_invalid());
        if variants.len() >= CACHE_VARIANTS {
            variants.remove(0);
        }
        self.bytes -= before - total(variants);
        // It is the one used last, so that making room does not take it away, unless nothing else is there.
        self.make_room(bytes);
        self.documents.get_or_insert_mut(hash, Vec::new).push(stored);
        self.bytes += bytes;
        Inserted::Stored
    }

    /// Evicts the least recently used until `bytes` more fit; nothing where they never can.
    pub fn make_room(&mut self, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes.saturating_add(bytes) > self.bytes_max && self.evict_one() {}
    }

    /// Lets the least recently used go; false when there is none.
    pub fn evict_one(&mut self) -> bool {
        let Some((_, variants)) = self.documents.pop_lru() else { return false };
        self.bytes -= total(&variants);
        self.evicted += variants.len() as u64;
        true
    }

    /// Lets go what is not for these hosts, and what is invalid.
    pub fn retain_hosts(&mut self, is_open: impl Fn(u64) -> bool) {
        let keeps = |stored: &Arc<Stored>| is_open(stored.host_key()) && !stored.is_invalid();
        self.documents.retain(|_, variants| {
            variants.retain(keeps);
            !variants.is_empty()
        });
        self.bytes = self.documents.iter().map(|(_, variants)| total(variants)).sum();
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.documents.clear();
        self.bytes = 0;
    }

    /// Returns whether `bytes` can be held at all.
    #[must_use]
    pub fn can_hold(&self, bytes: usize) -> bool {
        bytes <= self.bytes_max
    }

    /// Bytes of what it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Documents that it holds, variants counted once.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Responses evicted since the last time.
    pub fn take_evicted(&mut self) -> u64 {
        core::mem::take(&mut self.evicted)
    }
}

fn total(variants: &[Arc<Stored>]) -> usize {
    variants.iter().map(|stored| stored.bytes()).sum()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
