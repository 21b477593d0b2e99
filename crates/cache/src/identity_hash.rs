//! Maps whose keys are hashes already.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`IdentityHasher`]s.
pub(crate) type BuildIdentity = BuildHasherDefault<IdentityHasher>;

/// Takes a number that is a keyed hash for its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only numbers are keys; anything else is folded in, so that no key is lost.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}
