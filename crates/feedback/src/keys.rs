//! Keys that both ends share: the first signs, all verify, so that a key can be replaced without a gap.

use alloc::vec::Vec;

/// HMAC-SHA-256 under one key (RFC 2104), supplied by the shell: this crate has no cryptography.
pub trait Mac {
    /// The whole tag of the parts, one after the other.
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32];
}

impl<F: Fn(&[&[u8]]) -> [u8; 32]> Mac for F {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        self(parts)
    }
}

/// Bytes of the tag on the wire: the first half, the least that RFC 2104 §5 recommends.
pub const TAG_BYTES: usize = 16;
/// The largest number of a key; 0 is that of a message without a tag.
pub const KEY_ID_MAX: u8 = 15;
/// First bytes under every tag, so that the key's other uses make no tag of ours.
const LABEL: &[u8] = b"Flashweir-Overload/1";

/// The keys of one node, or of one upstream.
#[derive(Debug)]
pub struct KeyRing<M> {
    keys: Vec<(u8, M)>,
}

/// The keys make no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// The number is that of no key.
    #[error("key {id}: the number must be 1 to {KEY_ID_MAX}")]
    Id {
        /// The number.
        id: u8,
    },
    /// Two keys have one number, so a tag would not say which.
    #[error("key {id} is there twice")]
    Twice {
        /// The number.
        id: u8,
    },
}

impl<M> KeyRing<M> {
    /// Keys by number; the first signs. Without keys, messages have no tags.
    ///
    /// # Errors
    /// A number out of range, or one that is there twice; so there are at most [`KEY_ID_MAX`] keys.
    pub fn new(keys: Vec<(u8, M)>) -> Result<Self, KeyRingError> {
        for (index, &(id, _)) in keys.iter().enumerate() {
            if !(1..=KEY_ID_MAX).contains(&id) {
                return Err(KeyRingError::Id { id });
            }
            if keys[..index].iter().any(|&(other, _)| other == id) {
                return Err(KeyRingError::Twice { id });
            }
        }
        Ok(Self { keys })
    }

    /// Without keys.
    #[must_use]
    pub const fn empty() -> Self {
        Self { keys: Vec::new() }
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The number of the key that signs; 0 without keys.
    pub(crate) fn signing_id(&self) -> u8 {
        self.keys.first().map_or(0, |&(id, _)| id)
    }

    pub(crate) fn key(&self, id: u8) -> Option<&M> {
        self.keys.iter().find(|&&(other, _)| other == id).map(|(_, mac)| mac)
    }
}

/// The tag of a message's bytes between two ends that both know `context`.
pub(crate) fn tag_of(mac: &impl Mac, context: &[u8], message: &[u8]) -> [u8; TAG_BYTES] {
    // The length before the context keeps its bytes from being taken for the message's.
    let length = (context.len() as u64).to_be_bytes();
    let whole = mac.tag(&[LABEL, &length, context, message]);
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&whole[..TAG_BYTES]);
    tag
}

/// Compares in a time that does not depend on where the tags differ.
pub(crate) fn is_equal(one: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_numbers_of_their_own() {
        let ring = |ids: &[u8]| KeyRing::new(ids.iter().map(|&id| (id, ())).collect()).map(|_| ());
        assert_eq!(ring(&[1, 15]), Ok(()));
        assert_eq!(ring(&[0]), Err(KeyRingError::Id { id: 0 }));
        assert_eq!(ring(&[16]), Err(KeyRingError::Id { id: 16 }));
        assert_eq!(ring(&[3, 4, 3]), Err(KeyRingError::Twice { id: 3 }));
        assert_eq!(KeyRing::<()>::empty().signing_id(), 0);
    }

    #[test]
    fn a_tag_depends_on_where_the_context_ends() {
        let concatenate = |parts: &[&[u8]]| {
            let mut whole = [0; 32];
            let sum = parts.iter().flat_map(|part| part.iter()).enumerate();
            sum.for_each(|(at, byte)| whole[at % 16] ^= byte.wrapping_mul(at as u8 | 1));
            whole
        };
        assert_ne!(tag_of(&concatenate, b"ab", b"c"), tag_of(&concatenate, b"a", b"bc"));
        assert!(is_equal(&[7; TAG_BYTES], &[7; TAG_BYTES]));
        let mut other = [7; TAG_BYTES];
        other[TAG_BYTES - 1] ^= 1;
        assert!(!is_equal(&[7; TAG_BYTES], &other));
    }
}
