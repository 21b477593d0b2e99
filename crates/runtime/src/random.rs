//! Keys that no outsider can guess.

use std::hash::{BuildHasher as _, RandomState};

/// 64 bits from the operating system: the standard library keys its hash maps with them.
#[must_use]
pub fn random_u64() -> u64 {
    RandomState::new().hash_one(0_u64)
}
