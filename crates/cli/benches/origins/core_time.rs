//! How much of core 0 was neither idle nor the origin's.

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
        // User, nice, system, idle, waiting for a disk, interrupts (two), stolen; guests are among the first two.
        let all = ticks.iter().take(8).sum();
        Some(Self { all, idle: ticks.get(3)? + ticks.get(4)? })
    }

    /// The share of the time since `before` in which the core did something other than the origin, which was busy for the share `busy`.
    pub(crate) fn taken_since(self, before: Self, busy: f64) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = self.idle.saturating_sub(before.idle);
        Some((1.0 - idle as f64 / all as f64 - busy).max(0.0))
    }
}
