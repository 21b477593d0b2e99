//! States of the copies of a command: they run, start, stop or wait. No process is touched here.
//!
//! The first copies run, as many as are wanted: a copy keeps its port for life, and the last are the first to
//! go. A copy that ends by itself waits before it is started again, 1 s at first and twice as long each time
//! up to [`BACK_OFF_MAX`]; one that served for [`STABLE_AFTER`] begins again at 1 s. One that does not serve
//! in time is killed, and has crashed.

use crate::config::CopySettings;
use flashweir_core::{Duration, Instant};

/// The first wait after a crash.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// The longest: an operator who mends the command waits no longer than that.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// A copy that served this long has not crashed at once.
pub const STABLE_AFTER: Duration = Duration::from_secs(60);

/// State of one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Nothing.
    Absent,
    /// It was started, and does not serve yet.
    Starting {
        /// Start of the process.
        since: Instant,
    },
    /// It serves.
    Serving {
        /// Since when.
        since: Instant,
    },
    /// It was asked to stop.
    Stopping {
        /// Time at which it is killed.
        kill_at: Instant,
    },
    /// It was killed, and has not ended yet.
    Killed,
    /// It has crashed.
    BackingOff {
        /// Time at which it is started again.
        until: Instant,
    },
}

/// Action on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this copy.
    Start(usize),
    /// Ask it to stop (SIGTERM).
    Stop(usize),
    /// Kill it.
    Kill(usize),
}

/// All copies there may be.
#[derive(Debug)]
pub struct Copies {
    copies: Vec<Copy>,
    wanted: usize,
    stop_within: Duration,
    start_within: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Copy {
    state: CopyState,
    /// Crashes in a row.
    crashes: u32,
}

impl Copies {
    /// None runs, and none is wanted.
    #[must_use]
    pub fn new(settings: &CopySettings) -> Self {
        let copy = Copy { state: CopyState::Absent, crashes: 0 };
        Self {
            copies: vec![copy; settings.ports.len()],
            wanted: 0,
            stop_within: settings.stop_within,
            start_within: settings.start_within,
        }
    }

    /// Changes how many are wanted; more than there are ports count as all.
    pub fn want(&mut self, copies: u32) {
        self.wanted = (copies as usize).min(self.copies.len());
    }

    /// State of a copy.
    #[must_use]
    pub fn state(&self, copy: usize) -> CopyState {
        self.copies[copy].state
    }

    /// Copies that serve and are wanted.
    #[must_use]
    pub fn ready(&self) -> u32 {
        let serving = |copy: &&Copy| matches!(copy.state, CopyState::Serving { .. });
        self.copies.iter().take(self.wanted).filter(serving).count() as u32
    }

    /// Copies that are wanted and do not serve yet; those that crash included.
    #[must_use]
    pub fn starting(&self) -> u32 {
        self.wanted as u32 - self.ready()
    }

    /// Returns whether no process is left.
    #[must_use]
    pub fn are_gone(&self) -> bool {
        self.copies.iter().all(|copy| matches!(copy.state, CopyState::Absent | CopyState::BackingOff { .. }))
    }

    /// The actions that are due now. Each action is given once. O(copies).
    pub fn step(&mut self, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        for (place, copy) in self.copies.iter_mut().enumerate() {
            let is_wanted = place < self.wanted;
            match copy.state {
                CopyState::Absent if is_wanted => {
                    copy.state = CopyState::Starting { since: now };
                    actions.push(Action::Start(place));
                }
                CopyState::BackingOff { until } if is_wanted && now >= until => {
                    copy.state = CopyState::Starting { since: now };
                    actions.push(Action::Start(place));
                }
                CopyState::BackingOff { .. } if !is_wanted => copy.state = CopyState::Absent,
                CopyState::Starting { .. } | CopyState::Serving { .. } if !is_wanted => {
                    copy.state = CopyState::Stopping { kill_at: now + self.stop_within };
                    actions.push(Action::Stop(place));
                }
                CopyState::Starting { since } if now.saturating_since(since) >= self.start_within => {
                    copy.state = CopyState::Killed;
                    copy.crashes += 1;
                    actions.push(Action::Kill(place));
                }
                CopyState::Stopping { kill_at } if now >= kill_at => {
                    copy.state = CopyState::Killed;
                    actions.push(Action::Kill(place));
                }
                _ => {}
            }
        }
        actions
    }

    /// A health check was answered. Returns how long the copy took to start, if it serves from now on.
    pub fn healthy(&mut self, copy: usize, now: Instant) -> Option<Duration> {
        let CopyState::Starting { since } = self.copies[copy].state else { return None };
        self.copies[copy].state = CopyState::Serving { since: now };
        Some(now.saturating_since(since))
    }

    /// A process has ended, or could not be started. Returns how long it is waited before the next start, if
    /// it has crashed.
    pub fn ended(&mut self, copy: usize, now: Instant) -> Option<Duration> {
        let copy = &mut self.copies[copy];
        match copy.state {
            CopyState::Stopping { .. } => {
                copy.state = CopyState::Absent;
                return None;
            }
            CopyState::Serving { since } if now.saturating_since(since) >= STABLE_AFTER => copy.crashes = 1,
            // Counted when it was killed.
            CopyState::Killed => {}
            _ => copy.crashes += 1,
        }
        let doublings = copy.crashes.saturating_sub(1).min(10);
        let wait = (BACK_OFF_MIN * (1 << doublings)).min(BACK_OFF_MAX);
        copy.state = CopyState::BackingOff { until: now + wait };
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies() -> Copies {
        Copies::new(&CopySettings {
            command: vec!["server".to_owned()],
            ports: vec![1, 2, 3],
            health: "/".to_owned(),
            stop_within: Duration::from_secs(10),
            start_within: Duration::from_secs(40),
        })
    }

    fn at(second: u64) -> Instant {
        Instant::from_secs(second)
    }

    #[test]
    fn the_first_copies_run_and_the_last_stop_first() {
        let mut copies = copies();
        copies.want(9);
        assert_eq!(copies.step(at(0)), [0, 1, 2].map(Action::Start));
        assert!(copies.step(at(1)).is_empty(), "each once");
        assert_eq!(copies.healthy(0, at(5)), Some(Duration::from_secs(5)));
        assert_eq!((copies.healthy(0, at(6)), copies.ready(), copies.starting()), (None, 1, 2));
        copies.want(1);
        assert_eq!(copies.step(at(7)), [Action::Stop(1), Action::Stop(2)]);
        assert_eq!(copies.ended(1, at(8)), None);
        assert_eq!(copies.step(at(17)), [Action::Kill(2)]);
        assert!(!copies.are_gone() && copies.step(at(18)).is_empty());
        copies.want(0);
        copies.ended(2, at(19));
        assert_eq!(copies.step(at(19)), [Action::Stop(0)]);
        copies.ended(0, at(20));
        assert!(copies.are_gone());
    }

    #[test]
    fn a_copy_that_crashes_at_once_waits_longer_each_time() {
        let mut copies = copies();
        copies.want(1);
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(copies.step(now), [Action::Start(0)]);
            let wait = copies.ended(0, now).expect("a crash");
            assert!(copies.step(now).is_empty(), "it waits");
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        copies.step(now);
        copies.healthy(0, now);
        assert_eq!(copies.ended(0, now + STABLE_AFTER), Some(Duration::from_secs(1)));
        // One that is not wanted any more is not waited for.
        copies.want(0);
        copies.step(now);
        assert_eq!(copies.state(0), CopyState::Absent);
    }

    #[test]
    fn a_copy_that_never_serves_is_killed_and_has_crashed() {
        let mut copies = copies();
        copies.want(1);
        copies.step(at(0));
        assert!(copies.step(at(39)).is_empty());
        assert_eq!(copies.step(at(40)), [Action::Kill(0)]);
        assert_eq!(copies.ended(0, at(41)), Some(Duration::from_secs(1)));
        assert_eq!(copies.starting(), 1);
    }
}
