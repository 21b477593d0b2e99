//! Hysteresis: which ranks are throttled and which discarded at the present level.

use super::Rungs;
use alloc::vec::Vec;
use flashweir_core::limits::CLASSES;

/// Overload actions in use: discarding, throttling or both (the paper's §4.2, §4.3 and §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheme {
    /// Requests are discarded here from the discard threshold down to abatement; nothing is asked of senders.
    DropOnly,
    /// Senders are asked for less; nothing is discarded.
    ThrottleOnly,
    /// Senders are asked for less from the onset on; from the discard threshold down to the onset requests
    /// are discarded.
    #[default]
    Combined,
}

/// Discard orders for a gate that does not see the level itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Requests of this rank and of less important ones.
    pub discards_from: Option<u8>,
    /// Requests that their senders should not have sent.
    pub discards_excess: bool,
}

/// The flags of all ranks.
#[derive(Clone, Debug)]
pub struct LadderGate {
    scheme: Scheme,
    rungs: Rungs,
    /// Further onset levels, rising: each that is crossed is one more severity level. None: as many as ranks
    /// are throttled.
    severity_onsets: Vec<u64>,
    severity: u8,
    /// One bit for each rank.
    throttled: u16,
    discarding: u16,
    level: u64,
}

const _: () = assert!(CLASSES <= u16::BITS as usize);

impl LadderGate {
    /// Nothing is throttled or discarded. `severity_onsets` rise; it may be empty.
    #[must_use]
    pub fn new(scheme: Scheme, rungs: Rungs, severity_onsets: &[u64]) -> Self {
        debug_assert!(severity_onsets.is_sorted());
        let severity_onsets = severity_onsets.to_vec();
        Self { scheme, rungs, severity_onsets, severity: 0, throttled: 0, discarding: 0, level: 0 }
    }

    /// Other thresholds from now on. The flags stay until the next level, which is judged by the new ones.
    pub fn set_rungs(&mut self, rungs: Rungs) {
        let ranks = rungs.as_slice().len();
        let kept = u16::MAX >> (u16::BITS as usize - ranks);
        self.throttled &= kept;
        self.discarding &= kept;
        self.rungs = rungs;
    }

    /// The level now. O(ranks).
    pub fn observe(&mut self, level: u64) {
        self.level = level;
        for (rank, rung) in self.rungs.as_slice().iter().enumerate() {
            let bit = 1 << rank;
            let discards_down_to = match self.scheme {
                Scheme::DropOnly => rung.abatement,
                Scheme::ThrottleOnly | Scheme::Combined => rung.onset,
            };
            if self.scheme != Scheme::DropOnly {
                self.throttled = flag(self.throttled, bit, level >= rung.onset, level < rung.abatement);
            }
            if self.scheme != Scheme::ThrottleOnly {
                self.discarding = flag(self.discarding, bit, level >= rung.discard, level < discards_down_to);
            }
        }
        self.severity = self.severity_at(level);
    }

    /// The most important rank that is throttled; all less important ones are, too.
    #[must_use]
    pub fn throttled_from(&self) -> Option<u8> {
        (self.throttled != 0).then(|| self.throttled.trailing_zeros() as u8)
    }

    /// Returns true if a request of this rank is to be discarded.
    #[must_use]
    pub fn is_discarding(&self, rank: u8) -> bool {
        let rank = usize::from(rank).min(self.rungs.as_slice().len() - 1);
        self.discarding & (1 << rank) != 0
    }

    /// Orders at the newest level, for a gate that only obeys.
    #[must_use]
    pub fn orders(&self) -> Orders {
        let discards_from = (self.discarding != 0).then(|| self.discarding.trailing_zeros() as u8);
        Orders { discards_from, discards_excess: self.is_discarding_excess() }
    }

    /// Returns true if a request that its sender should not have sent is to be discarded: while requests wait
    /// for the origin.
    #[must_use]
    pub fn is_discarding_excess(&self) -> bool {
        self.scheme != Scheme::ThrottleOnly && self.level >= self.rungs.lowest().abatement
    }

    /// Onset levels crossed and not yet abated; 0 without overload.
    #[must_use]
    pub fn severity(&self) -> u8 {
        self.severity
    }

    /// The thresholds in force.
    #[must_use]
    pub fn rungs(&self) -> &Rungs {
        &self.rungs
    }

    /// The newest level.
    #[must_use]
    pub fn level(&self) -> u64 {
        self.level
    }

    /// A severity level is left when the level falls below the onset before it, the first one at abatement.
    fn severity_at(&self, level: u64) -> u8 {
        let onsets = &self.severity_onsets;
        if onsets.is_empty() {
            return self.throttled.count_ones() as u8;
        }
        let crossed = onsets.iter().filter(|&&onset| level >= onset).count();
        let before =
            |index: usize| index.checked_sub(1).map_or(self.rungs.lowest().abatement, |it| onsets[it]);
        let kept = (0..onsets.len()).filter(|&index| level >= before(index)).count();
        // `kept` is at least `crossed`, because the onset before a level lies below it.
        (self.severity as usize).clamp(crossed, kept.max(crossed)) as u8
    }
}

fn flag(flags: u16, bit: u16, sets: bool, clears: bool) -> u16 {
    if sets {
        flags | bit
    } else if clears {
        flags & !bit
    } else {
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::{Rung, SEVERITY_ONSETS};
    use proptest::prelude::*;

    const HIGH: Rung = Rung { abatement: 110, onset: 150, discard: 200 };
    const LOW: Rung = Rung { abatement: 40, onset: 80, discard: 100 };

    fn gate(scheme: Scheme) -> LadderGate {
        LadderGate::new(scheme, Rungs::new(alloc::vec![HIGH, LOW]).unwrap(), &[])
    }

    #[test]
    fn throttling_and_discarding_begin_and_end_at_their_own_thresholds() {
        let mut gate = gate(Scheme::Combined);
        let mut at = |level| {
            gate.observe(level);
            (gate.throttled_from(), gate.is_discarding(0), gate.is_discarding(1), gate.severity())
        };
        assert_eq!(at(79), (None, false, false, 0));
        assert_eq!(at(80), (Some(1), false, false, 1));
        assert_eq!(at(99), (Some(1), false, false, 1));
        assert_eq!(at(100), (Some(1), false, true, 1));
        assert_eq!(at(80), (Some(1), false, true, 1), "down to the onset");
        assert_eq!(at(79), (Some(1), false, false, 1), "down to abatement");
        assert_eq!(at(200), (Some(0), true, true, 2));
        assert_eq!(at(110), (Some(0), false, true, 2));
        assert_eq!(at(109), (Some(1), false, true, 1));
        assert_eq!(at(39), (None, false, false, 0));
    }

    #[test]
    fn a_scheme_uses_its_own_thresholds_only() {
        let mut drops = gate(Scheme::DropOnly);
        drops.observe(100);
        assert_eq!((drops.throttled_from(), drops.is_discarding(1)), (None, true));
        drops.observe(40);
        assert!(drops.is_discarding(1) && !drops.is_discarding(0));
        drops.observe(39);
        assert!(!drops.is_discarding(1));
        let mut throttles = gate(Scheme::ThrottleOnly);
        throttles.observe(1_000);
        assert_eq!((throttles.throttled_from(), throttles.is_discarding(1)), (Some(0), false));
        assert!(!throttles.is_discarding_excess());
    }

    #[test]
    fn severity_falls_one_onset_later_than_it_rises() {
        let rungs = Rungs::single(Rung { abatement: 40, onset: 80, discard: 250 }).unwrap();
        let mut gate = LadderGate::new(Scheme::Combined, rungs, &SEVERITY_ONSETS);
        let severities = [79, 80, 120, 210, 199, 160, 159, 119, 79, 40, 39].map(|level| {
            gate.observe(level);
            gate.severity()
        });
        assert_eq!(severities, [0, 1, 2, 4, 4, 4, 3, 2, 1, 1, 0]);
    }

    proptest! {
        /// For every sequence of levels: the throttled ranks are the least important ones, a rank that is
        /// discarded is throttled, and a flag changes only where its threshold was crossed.
        #[test]
        fn the_flags_keep_the_order_of_importance(levels in proptest::collection::vec(0u64..300, 1..80)) {
            let mut gate = gate(Scheme::Combined);
            for level in levels {
                let before = gate.clone();
                gate.observe(level);
                for (rank, rung) in [HIGH, LOW].iter().enumerate() {
                    let is = |flags: u16| flags & (1 << rank) != 0;
                    prop_assert!(!is(gate.discarding) || is(gate.throttled));
                    prop_assert!(level < rung.onset || is(gate.throttled));
                    prop_assert!(level >= rung.abatement || !is(gate.throttled));
                    let is_between = (rung.abatement..rung.onset).contains(&level);
                    prop_assert!(!is_between || is(gate.throttled) == is(before.throttled));
                }
                prop_assert!(gate.throttled & 1 == 0 || gate.throttled & 2 != 0);
                prop_assert!(gate.discarding & 1 == 0 || gate.discarding & 2 != 0);
            }
        }
    }
}
