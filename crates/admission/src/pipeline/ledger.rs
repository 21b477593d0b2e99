//! Outcomes of requests: one count for each way a request can end, and each stage's flow derived from it.

use super::StageName;
use crate::Flow;

/// Counts since the pipeline was made. Offered are the admitted but for `again`, the refused, those who left
/// and those who wait (of whom those do not count who ask again).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Requests that arrived at the door (offered).
    pub offered: u64,
    /// Of these, attempts: recognised retries are left out (unique offered).
    pub unique_offered: u64,
    /// Requests that all stages let in (admitted).
    pub admitted: u64,
    /// Of these, requests that had been counted before, and those that no client sent
    /// ([`Asking`](super::Asking)).
    pub again: u64,
    /// Requests refused, by the stage that is charged.
    pub refused: [u64; StageName::COUNT],
    /// Requests whose clients left while they waited.
    pub left: u64,
    /// Admitted requests that have ended.
    pub ended: u64,
}

impl Ledger {
    /// Requests refused (shed), over all stages.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Admitted requests that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.admitted - self.ended
    }

    pub(super) fn refuse(&mut self, stage: StageName) {
        self.refused[stage as usize] += 1;
    }

    /// Everything so far, as `stage` sees it.
    fn flow(&self, stage: StageName) -> Flow {
        let place = stage as usize;
        Flow {
            offered: self.offered,
            admitted: self.admitted,
            refused_by_self: self.refused[place],
            refused_by_earlier: self.refused[..place].iter().sum(),
            refused_by_later: self.refused[place + 1..].iter().sum(),
        }
    }
}

/// State of a ledger at a stage's last sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowMark(Ledger);

impl FlowMark {
    /// The flow since the last time.
    pub(super) fn advance(&mut self, ledger: &Ledger, stage: StageName) -> Flow {
        let (now, before) = (ledger.flow(stage), self.0.flow(stage));
        self.0 = *ledger;
        Flow {
            offered: now.offered - before.offered,
            admitted: now.admitted - before.admitted,
            refused_by_self: now.refused_by_self - before.refused_by_self,
            refused_by_earlier: now.refused_by_earlier - before.refused_by_earlier,
            refused_by_later: now.refused_by_later - before.refused_by_later,
        }
    }

    pub(super) fn unique_offered(&self) -> u64 {
        self.0.unique_offered
    }
}
