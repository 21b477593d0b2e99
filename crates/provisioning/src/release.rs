//! Release of servers: the maximum need of a recent period is kept.
//!
//! **The rule.** An application keeps the most servers that it needed within the release window, each need
//! counted with a margin: demand that sways about the edge between two numbers of servers would otherwise
//! move one back and forth. The window is a multiple of the measured start-up time, because a server that is
//! given back a moment too early is missing for that time. The paper gives back at the next half-hour, and
//! has no rule against swaying besides that (its Δ and δ are about adding).

use alloc::collections::VecDeque;
use flashweir_core::limits::RELEASE_ENTRIES;
use flashweir_core::{Duration, Instant};

/// Servers needed within the release window.
#[derive(Debug, Default)]
pub(crate) struct Release {
    /// Times at which servers were needed, and their number: times ascend, servers descend, so the first is
    /// the most.
    needed: VecDeque<(Instant, u32)>,
}

impl Release {
    /// Takes what is needed now. O(1) on average.
    pub(crate) fn observe(&mut self, now: Instant, servers: u32, window: Duration) {
        while self.needed.back().is_some_and(|&(_, earlier)| earlier <= servers) {
            self.needed.pop_back();
        }
        self.needed.push_back((now, servers));
        while self.needed.front().is_some_and(|&(at, _)| now.saturating_since(at) > window) {
            self.needed.pop_front();
        }
        // Too many to remember: the most counts a little longer.
        if self.needed.len() > RELEASE_ENTRIES
            && let Some((_, most)) = self.needed.pop_front()
            && let Some(next) = self.needed.front_mut()
        {
            next.1 = most;
        }
    }

    /// The most that was needed within the window.
    pub(crate) fn most(&self) -> u32 {
        self.needed.front().map_or(0, |&(_, servers)| servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the most of the window, and never less where memory is short. Method: against all that was
    /// ever needed.
    #[test]
    fn the_most_of_the_window_is_kept() {
        let mut rng = flashweir_core::Rng::new(3);
        let window = Duration::from_secs(400);
        let mut release = Release::default();
        let mut all = Vec::new();
        for second in 0..2_000 {
            let now = Instant::from_secs(second);
            // A long descent fills the memory.
            let servers = if second < 1_000 { 5_000 - second as u32 } else { rng.below(100) as u32 };
            all.push((now, servers));
            release.observe(now, servers, window);
            let within = all.iter().filter(|(at, _)| now.saturating_since(*at) <= window);
            let most = within.map(|(_, servers)| *servers).max().unwrap();
            assert!(release.most() >= most && release.needed.len() <= RELEASE_ENTRIES);
            assert!(!(1_500..).contains(&second) || release.most() == most, "{second}");
        }
    }
}
