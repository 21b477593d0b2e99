//! Thresholds of all ranks, and the order that they must have.

use alloc::vec::Vec;
use flashweir_core::limits::CLASSES;

/// Thresholds of one rank, in the ladder's unit: requests, or microseconds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Throttling ends below it (A in the paper, §2.1).
    pub abatement: u64,
    /// Throttling begins at it (O in the paper).
    pub onset: u64,
    /// Discarding begins at it (D in the paper).
    pub discard: u64,
}

/// The rungs of all ranks; rank 0, the most important, has the highest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rungs(Vec<Rung>);

/// The thresholds make no ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RungsError {
    /// No rank, or more than there can be.
    #[error("{count} ranks: expected 1 to {CLASSES}")]
    Count {
        /// Number of ranks.
        count: usize,
    },
    /// One rank's own thresholds are not in order.
    #[error(
        "rank {rank}: abatement ({}) must be below onset ({}), and onset below discard ({})",
        .rung.abatement, .rung.onset, .rung.discard
    )]
    Rung {
        /// Its rank.
        rank: u8,
        /// Its thresholds.
        rung: Rung,
    },
    /// A more important rank would be throttled before a less important one is discarded.
    #[error("rank {rank}: abatement ({abatement}) must be above the discard of rank {} ({discard})", .rank + 1)]
    Order {
        /// The more important rank.
        rank: u8,
        /// Its abatement.
        abatement: u64,
        /// The discard of the next less important rank.
        discard: u64,
    },
}

impl Rungs {
    /// By rank, the most important first.
    ///
    /// # Errors
    /// Thresholds out of order: A < O < D of each rank, and A of a rank above D of the next less important
    /// one.
    pub fn new(rungs: Vec<Rung>) -> Result<Self, RungsError> {
        if !(1..=CLASSES).contains(&rungs.len()) {
            return Err(RungsError::Count { count: rungs.len() });
        }
        for (&rung, rank) in rungs.iter().zip(0..) {
            if rung.abatement >= rung.onset || rung.onset >= rung.discard {
                return Err(RungsError::Rung { rank, rung });
            }
        }
        for (pair, rank) in rungs.windows(2).zip(0..) {
            let (abatement, discard) = (pair[0].abatement, pair[1].discard);
            if abatement <= discard {
                return Err(RungsError::Order { rank, abatement, discard });
            }
        }
        Ok(Self(rungs))
    }

    /// One rank.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn single(rung: Rung) -> Result<Self, RungsError> {
        Self::new(alloc::vec![rung])
    }

    /// By rank.
    #[must_use]
    pub fn as_slice(&self) -> &[Rung] {
        &self.0
    }

    /// The rung of a rank; a rank beyond the last counts as the last.
    #[must_use]
    pub fn of(&self, rank: u8) -> &Rung {
        &self.0[usize::from(rank).min(self.0.len() - 1)]
    }

    /// The rung of the least important rank.
    #[must_use]
    pub fn lowest(&self) -> &Rung {
        &self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_out_of_order_are_named() {
        let rung = |abatement, onset, discard| Rung { abatement, onset, discard };
        let error = |rungs: &[Rung]| Rungs::new(rungs.to_vec()).unwrap_err();
        assert!(Rungs::new(alloc::vec![rung(110, 150, 200), rung(40, 80, 100)]).is_ok());
        assert_eq!(error(&[]), RungsError::Count { count: 0 });
        assert_eq!(error(&[rung(5, 5, 9)]), RungsError::Rung { rank: 0, rung: rung(5, 5, 9) });
        assert_eq!(error(&[rung(5, 9, 9)]), RungsError::Rung { rank: 0, rung: rung(5, 9, 9) });
        let overlapping = [rung(100, 150, 200), rung(40, 80, 100)];
        assert_eq!(error(&overlapping), RungsError::Order { rank: 0, abatement: 100, discard: 100 });
        assert_eq!(
            alloc::format!("{}", error(&overlapping)),
            "rank 0: abatement (100) must be above the discard of rank 1 (100)"
        );
    }

    #[test]
    fn a_rank_beyond_the_last_counts_as_the_last() {
        let rungs = Rungs::single(Rung { abatement: 75, onset: 150, discard: 200 }).unwrap();
        assert_eq!((rungs.of(0), rungs.of(9)), (rungs.lowest(), rungs.lowest()));
    }
}
