//! Faults, and when they occur.

use flashweir_core::Instant;
use std::num::NonZeroU32;
use std::ops::Range;

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// From when until when.
    pub during: Range<Instant>,
}

/// Kind of fault. Several faults may overlap: slowdowns multiply, and the server is up when nothing keeps it
/// down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The server loses all that it has accepted and refuses connections until the end, when it is empty
    /// again.
    Crash,
    /// The server takes this many times as long for everything (1 to a million).
    Slow(f64),
    /// The server has this number of processors instead of the usual one, fewer or more; of several the last
    /// to begin counts. Only under processor sharing: no request in service has to stop.
    Processors(NonZeroU32),
    /// The link between clients and gate carries nothing: requests and answers that would arrive meanwhile do
    /// not. (A real transport would send them again; at this level of detail the client's time limit does.
    /// Over packets, every link loses what is offered to it, and TCP does send it again.)
    LinkCut,
    /// The planner, a router's too, does not get this share (0 to 1) of the gates' samples; what is in them
    /// is gone.
    LostFeedback(f64),
}

/// Faults in force at the moment.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    crashes: u32,
    cuts: u32,
    processors: Vec<NonZeroU32>,
    /// The factors and shares in force, in the order they began.
    slowdowns: Vec<f64>,
    lost_shares: Vec<f64>,
}

impl Fault {
    /// The problem of the fault, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let Range { start, end } = &self.during;
        if start >= end {
            return Some(format!(
                "it ends ({} s) before it begins ({} s)",
                end.as_secs_f64(),
                start.as_secs_f64()
            ));
        }
        match self.kind {
            FaultKind::Slow(factor) if !(1.0..=SLOWDOWN_MOST).contains(&factor) => {
                Some(format!("a slowdown by {factor}: expected 1 to {SLOWDOWN_MOST}"))
            }
            FaultKind::LostFeedback(share) if !(0.0..=1.0).contains(&share) => {
                Some(format!("{share} is no share of samples: expected 0 to 1"))
            }
            _ => None,
        }
    }
}

impl Troubles {
    pub(super) fn change(&mut self, kind: FaultKind, begins: bool) {
        match kind {
            FaultKind::Crash => count(&mut self.crashes, begins),
            FaultKind::LinkCut => count(&mut self.cuts, begins),
            FaultKind::Processors(count) => list(&mut self.processors, count, begins),
            FaultKind::Slow(factor) => list(&mut self.slowdowns, factor, begins),
            FaultKind::LostFeedback(share) => list(&mut self.lost_shares, share, begins),
        }
    }

    pub(super) fn server_is_down(&self) -> bool {
        self.crashes > 0
    }

    pub(super) fn link_is_cut(&self) -> bool {
        self.cuts > 0
    }

    pub(super) fn slowdown(&self) -> f64 {
        self.slowdowns.iter().product()
    }

    /// Number of processors that the server has, if not its own.
    pub(super) fn processors(&self) -> Option<NonZeroU32> {
        self.processors.last().copied()
    }

    /// The share of samples that is lost.
    pub(super) fn lost_feedback(&self) -> f64 {
        1.0 - self.lost_shares.iter().map(|share| 1.0 - share).product::<f64>()
    }
}

fn count(now: &mut u32, begins: bool) {
    // Only a fault that has begun ends.
    *now = if begins { *now + 1 } else { *now - 1 };
}

fn list<T: PartialEq>(now: &mut Vec<T>, value: T, begins: bool) {
    if begins {
        now.push(value);
    } else if let Some(place) = now.iter().position(|other| *other == value) {
        now.remove(place);
    }
}

/// Eleven days for a second's work: slower is a crash.
const SLOWDOWN_MOST: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_overlap() {
        let mut troubles = Troubles::default();
        let (slow, slower) = (FaultKind::Slow(2.0), FaultKind::Slow(3.0));
        for kind in [slow, slower, FaultKind::Crash, FaultKind::Crash] {
            troubles.change(kind, true);
        }
        assert_eq!((troubles.slowdown(), troubles.server_is_down()), (6.0, true));
        for kind in [slow, FaultKind::Crash] {
            troubles.change(kind, false);
        }
        assert_eq!(
            (troubles.slowdown(), troubles.server_is_down(), troubles.link_is_cut()),
            (3.0, true, false)
        );
        troubles.change(FaultKind::LostFeedback(0.5), true);
        troubles.change(FaultKind::LostFeedback(0.2), true);
        assert!((troubles.lost_feedback() - 0.6).abs() < 1e-12);
    }
}
