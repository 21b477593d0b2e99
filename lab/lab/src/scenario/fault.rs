//! Faults, from the file.

use crate::scenario::file::{FaultFile, FaultName};
use crate::scenario::problem::{Problem, within, wrong};
use flashweir_core::Instant;
use flashweir_sim::request::{Fault, FaultKind};

impl FaultFile {
    /// The fault that the table at `key` describes.
    pub(crate) fn fault(&self, key: &str) -> Result<Fault, Problem> {
        let at = |name: &str| format!("{key}.{name}");
        let number = |name: &str, value: Option<f64>, from, to| match value {
            Some(value) => within(at(name), value, from, to),
            None => wrong(at(name), "missing: this kind of fault needs it"),
        };
        if self.factor.is_some() && self.kind != FaultName::Slow {
            return wrong(at("factor"), "goes with kind = \"slow\"");
        }
        if self.share.is_some() && self.kind != FaultName::LostFeedback {
            return wrong(at("share"), "goes with kind = \"lost_feedback\"");
        }
        let kind = match self.kind {
            FaultName::Crash => FaultKind::Crash,
            FaultName::LinkCut => FaultKind::LinkCut,
            FaultName::Slow => FaultKind::Slow(number("factor", self.factor, 1.0, 1e6)?),
            FaultName::LostFeedback => FaultKind::LostFeedback(number("share", self.share, 0.0, 1.0)?),
        };
        let during = self.during.0;
        Ok(Fault { kind, during: Instant::from_duration(during.from)..Instant::from_duration(during.to) })
    }
}
