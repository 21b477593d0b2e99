//! One keyed hash for every table that clients can fill, and a mixer for numbers that no client chooses.

use core::hash::Hasher as _;
use siphasher::sip::SipHasher13;

/// SipHash-1-3 under a key drawn at start: clients cannot choose colliding keys. About 20 ns for short input.
///
/// ```
/// use flashweir_core::Hasher64;
/// let hasher = Hasher64::new(1, 2);
/// assert_eq!(hasher.hash(&[b"example.org"]), hasher.hash(&[b"example.org"]));
/// // Parts are delimited: moving a byte across a boundary changes the hash.
/// assert_ne!(hasher.hash(&[b"ab", b"c"]), hasher.hash(&[b"a", b"bc"]));
/// // First parts that many inputs share are hashed once.
/// assert_eq!(hasher.after(&[b"ab"]).hash(&[b"c"]), hasher.hash(&[b"ab", b"c"]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hasher64(SipHasher13);

/// Parts up to this length together are hashed in one piece: the library is slowest at many short ones.
const GATHERED_BYTES: usize = 256;
/// Length of a part's length.
const LENGTH_BYTES: usize = size_of::<u64>();

impl Hasher64 {
    /// A hasher under the key (`key0`, `key1`).
    #[must_use]
    pub fn new(key0: u64, key1: u64) -> Self {
        Self(SipHasher13::new_with_keys(key0, key1))
    }

    /// The hash of the parts in order; each has its length before it.
    #[must_use]
    pub fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut gathered = [0; GATHERED_BYTES];
        let mut end = 0;
        for part in parts {
            let (start, next) = (end + LENGTH_BYTES, end + LENGTH_BYTES + part.len());
            let (Some(length), true) = (gathered.get_mut(end..start), next <= GATHERED_BYTES) else {
                return self.after(parts).0.finish();
            };
            length.copy_from_slice(&(part.len() as u64).to_le_bytes());
            gathered[start..next].copy_from_slice(part);
            end = next;
        }
        self.0.hash(&gathered[..end])
    }

    /// A hasher of what follows these parts: its hashes are those of these parts and its own.
    #[must_use]
    pub fn after(&self, parts: &[&[u8]]) -> Self {
        let mut hasher = self.0;
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        Self(hasher)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the input changes about half of the
/// output's. One to one and without a key: not for what clients choose. A few integer operations.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn by_library(key: (u64, u64), parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
        for part in parts {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    }

    /// Goal: what a state file says of classes of URLs holds for the next version. Method: known hashes.
    #[test]
    fn the_hash_is_the_same_in_every_version() {
        let hasher = Hasher64::new(1, 2);
        let parts: [&[&[u8]]; 3] = [&[], &[b"GET", b"/index.html"], &[b"", b"", b"a"]];
        let expected = [7_760_257_379_124_798_368, 13_346_965_376_021_824_420, 14_137_524_738_962_045_699];
        assert_eq!(parts.map(|parts| hasher.hash(parts)), expected);
    }

    proptest! {
        #[test]
        fn it_is_siphash_1_3_of_the_parts_and_their_lengths_however_they_are_gathered(
            key: (u64, u64), parts in vec(vec(any::<u8>(), 0..90), 0..7), cut in 0_usize..7
        ) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let hasher = Hasher64::new(key.0, key.1);
            let expected = by_library(key, &parts);
            prop_assert_eq!(hasher.hash(&parts), expected);
            let (first, rest) = parts.split_at(cut.min(parts.len()));
            prop_assert_eq!(hasher.after(first).hash(rest), expected);
        }
    }
}
