//! Time in which core 0 was not idle.
//!
//! All processes of an origin may run there only. While one of them has work the core is not idle, and on a
//! quiet machine nothing else runs there, so this is the time in which the origin had work. The origin's own
//! account falls short of it: the waiting of several processes overlaps and cannot be added up, and no
//! process is charged for interrupts. The difference is printed, for it is also what other programs took.

use std::fs;

/// Ticks of the core since the machine started.
#[derive(Clone, Copy)]
pub(crate) struct CoreTime {
    all: u64,
    idle: u64,
}

impl CoreTime {
    /// `None` where the kernel does not tell.
    pub(crate) fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu0 "))?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|ticks| ticks.parse().ok()).collect();
        // User, nice, system, idle, waiting for a disk, interrupts (two), stolen; guests are among the first
        // two.
        let all = ticks.iter().take(8).sum();
        Some(Self { all, idle: ticks.get(3)? + ticks.get(4)? })
    }

    /// The share of the time since `before` in which the core was not idle; `None` if no time has passed.
    pub(crate) fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = self.idle.saturating_sub(before.idle);
        Some((1.0 - idle as f64 / all as f64).max(0.0))
    }
}
