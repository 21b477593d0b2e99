//! Real work that no compiler and no cache can shorten: a chain of hashes.

use flashweir_core::Hasher64;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Links between two looks at the stop flag: about 20 µs, so stopping is prompt and looking costs nothing.
const LINKS_PER_LOOK: u64 = 1_024;

/// Follows a chain of `links` hashes, each of the one before; ends early when `stop` is set.
pub(crate) fn follow_chain(links: u64, stop: &AtomicBool) -> u64 {
    let hasher = Hasher64::new(1, 2);
    let mut state = black_box(links);
    let mut left = links;
    while left > 0 && !stop.load(Ordering::Relaxed) {
        let links = left.min(LINKS_PER_LOOK);
        for _ in 0..links {
            state = hasher.hash(&[&state.to_le_bytes()]);
        }
        left -= links;
    }
    black_box(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_flag_ends_even_endless_work() {
        follow_chain(u64::MAX, &AtomicBool::new(true));
    }

    #[test]
    fn the_chain_is_as_long_as_asked() {
        let run = AtomicBool::new(false);
        let hasher = Hasher64::new(1, 2);
        let third = (0..3).fold(3u64, |state, _| hasher.hash(&[&state.to_le_bytes()]));
        assert_eq!(follow_chain(3, &run), third);
    }
}
