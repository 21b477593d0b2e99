//! Owner of a document among redirectors: a rendezvous hash, the same on every distributor.
//!
//! Each redirector is given a weight by a hash of (document, redirector), and the highest one owns the
//! document (Thaler and Ravishankar, 1998). The thesis leaves its hash open. Adding the k-th redirector moves
//! the documents for which it is the highest, 1/k of them, all of them to it; removing one moves its
//! documents only. There is no table, so distributors agree without talking, as long as they have the same
//! list of names, in any order.

use crate::SettingsError;
use alloc::vec::Vec;
use flashweir_core::hash::mix;
use flashweir_core::limits::REDIRECTORS;

/// The redirectors by their names. `owner` is O(redirectors): some nanoseconds for each.
///
/// ```
/// use flashweir_replication::Ring;
/// let ring = Ring::new([11, 12, 13])?;
/// let reordered = Ring::new([13, 11, 12])?;
/// assert_eq!(ring.name(ring.owner(7)), reordered.name(reordered.owner(7)));
/// # Ok::<(), flashweir_replication::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring(Vec<u64>);

impl Ring {
    /// Of redirectors with these names (a hash of each one's address).
    ///
    /// # Errors
    /// [`SettingsError`] for no redirector, more than [`REDIRECTORS`], or two of one name.
    pub fn new(names: impl IntoIterator<Item = u64>) -> Result<Self, SettingsError> {
        let names: Vec<u64> = names.into_iter().take(REDIRECTORS + 1).collect();
        if names.is_empty() || names.len() > REDIRECTORS {
            return Err(SettingsError::new("number of redirectors", "1 to 256"));
        }
        let mut sorted = names.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(SettingsError::new("names of redirectors", "each of them once"));
        }
        Ok(Self(names))
    }

    /// The place of the redirector that owns the document. `document` is a hash of its URL, which need not be
    /// uniform.
    #[must_use]
    pub fn owner(&self, document: u64) -> usize {
        // The names break ties, so that the order of the list does not.
        let weight = |name: u64| (mix(mix(document).wrapping_add(mix(name ^ GOLDEN))), name);
        // Holds because a ring has one redirector at least.
        (0..self.0.len()).max_by_key(|&place| weight(self.0[place])).unwrap_or(0)
    }

    /// The name of the redirector at a place.
    #[must_use]
    pub fn name(&self, place: usize) -> Option<u64> {
        self.0.get(place).copied()
    }

    /// Number of redirectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: a ring has one redirector at least.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Keeps a name of zero from being the mixer's fixed point.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
