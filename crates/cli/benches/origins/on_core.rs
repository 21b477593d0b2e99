//! Reads at given moments of a run what an origin does with the time of core 0.

use crate::application::Application;
use crate::core_time::CoreTime;
use flashweir_load::Progress;
use flashweir_load::trials::origins::Share;
use flashweir_testbed::origin::account::Ruler;
use std::time::Duration;

pub(crate) struct CoreRuler {
    ruler: Ruler,
    moments: Vec<Duration>,
    core: Vec<Option<CoreTime>>,
}

impl CoreRuler {
    pub(crate) fn new(application: &Application, moments: &[Duration]) -> Self {
        let ruler = Ruler::new(application.meter(), moments);
        Self { ruler, moments: moments.to_vec(), core: Vec::new() }
    }

    pub(crate) fn look(&mut self, progress: &Progress) {
        self.ruler.look(progress.elapsed, progress.totals.goodput);
        if self.moments.get(self.core.len()).is_some_and(|moment| progress.elapsed >= *moment) {
            self.core.push(CoreTime::read());
        }
    }

    /// Shares of the time between two moments, and the part of the core's time that the origin's account does
    /// not show.
    pub(crate) fn share(&self, from: usize, to: usize) -> Result<(Share, Option<f64>), String> {
        let account = self.share_by_account(from, to)?;
        let at = |moment: usize| self.core.get(moment).copied().flatten();
        let not_idle = at(from).zip(at(to)).and_then(|(before, after)| after.busy_since(before));
        let busy = not_idle.map_or(account.busy, |not_idle| not_idle.max(account.busy));
        let taken = not_idle.map(|_| busy - account.busy);
        Ok((Share { busy, ..account }, taken))
    }

    /// The same by the origin's own account alone, for times in which another program is on the core.
    pub(crate) fn share_by_account(&self, from: usize, to: usize) -> Result<Share, String> {
        let useful = self.ruler.useful(from, to).map_err(|error| error.to_string())?;
        // An origin that completes nothing beside a crowd does nothing of use, however busy its core is.
        let has_completed = useful.processor_ms.is_some();
        Ok(Share { busy: useful.busy, in_time: if has_completed { useful.in_time } else { 0.0 } })
    }
}
