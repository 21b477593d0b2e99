//! Cause of the present load.

use core::sync::atomic::{AtomicUsize, Ordering};

use flashweir_admission::pipeline::LoadCause;

use super::ControlMetrics;
use crate::counter::Counter;
use crate::group::{MetricGroup, Scrape};

/// The verdict in force.
#[derive(Debug, Default)]
pub(crate) struct VerdictMetrics {
    /// Its place among all causes.
    cause: AtomicUsize,
    changes: Counter,
}

impl ControlMetrics {
    /// The verdict now in force.
    pub fn publish_verdict(&self, cause: LoadCause) {
        if self.verdict.cause.swap(cause as usize, Ordering::Relaxed) != cause as usize {
            self.verdict.changes.increment();
        }
    }
}

impl MetricGroup for VerdictMetrics {
    fn title(&self) -> &'static str {
        "Verdict"
    }

    fn export(&self, scrape: &mut Scrape) {
        let present = self.cause.load(Ordering::Relaxed);
        let causes = LoadCause::ALL.map(|cause| (cause.as_str(), cause as usize == present));
        scrape.states(
            "verdict",
            "Why load is as it is: 1 for the present verdict.",
            "cause",
            causes.into_iter(),
        );
        scrape.counter("verdict_changes", "Verdicts that came after another.", self.changes.value());
    }
}
