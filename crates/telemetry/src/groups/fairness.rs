//! Fair shares among clients: who is demoted, and by what they have in common.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use flashweir_admission::fairness::{Cause, FairnessStatus};

use super::ControlMetrics;
use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Scrape, WorkerGroup};
use crate::label::Label;

/// Fair shares among clients.
#[derive(Debug, Default)]
pub struct FairnessMetrics {
    /// Requests that came after the others of their class, by what was over its share.
    pub demoted: CounterSet<Cause>,
    /// Sources listed because their clients ignore `Retry-After`.
    pub listed: Counter,
    /// Connections of such sources that were closed at once.
    pub dropped: Counter,
    people: AtomicU32,
    over: [AtomicU32; Cause::COUNT],
}

impl FairnessMetrics {
    /// Sets the present state at this worker, of all services together.
    pub fn set(&self, status: &FairnessStatus) {
        // Relaxed: a scrape only needs each number to be one that was true a moment ago.
        self.people.store(status.people, Ordering::Relaxed);
        for (over, seen) in self.over.iter().zip(&status.over) {
            over.store(*seen, Ordering::Relaxed);
        }
    }

    /// Active persons at this worker.
    #[must_use]
    pub fn people(&self) -> u32 {
        self.people.load(Ordering::Relaxed)
    }

    /// Persons, or values of a sign, that are over their share at this worker.
    #[must_use]
    pub fn over(&self, cause: Cause) -> u32 {
        self.over[cause.index()].load(Ordering::Relaxed)
    }
}

impl WorkerGroup for FairnessMetrics {
    const TITLE: &'static str = "Fairness among clients";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Requests that came after the others of their class, by what their clients have in common that was over a fair share.";
        scrape.counter_set("fairness_demoted", help, copies, |f| &f.demoted);
        let help = "Sources that were listed because their clients come again and again before their Retry-After is over.";
        scrape.counters(
            copies,
            &[
                ("impatient_sources_listed", help, |f| &f.listed),
                (
                    "impatient_connections_dropped",
                    "Connections of listed sources that were closed at once; the gate in the kernel counts its own.",
                    |f| &f.dropped,
                ),
            ],
        );
        let help = "Clients that behave like people and were active in the last half minute, while a service is short; each worker \
                    counts its own.";
        let people: u32 = copies.iter().map(|f| f.people()).sum();
        scrape.gauge("fairness_people", help, f64::from(people));
        let help = "Persons, or values of a sign, that are over a fair share now, with the worker that sees most of them.";
        let over = |cause: Cause| copies.iter().map(|f| f.over(cause)).max().unwrap_or_default();
        let over = Cause::ALL.iter().map(|&cause| (vec![cause.as_str().to_owned()], f64::from(over(cause))));
        scrape.gauge_series("fairness_over_share", help, &["by"], over);
    }
}

/// Sources whose clients ignore `Retry-After`, as all workers share them.
#[derive(Debug, Default)]
pub struct ImpatienceFigures {
    in_force: AtomicUsize,
    overflows: AtomicU64,
}

impl ControlMetrics {
    /// Sources whose new connections are refused now, and how often one was not watched, or not listed, for
    /// want of room.
    pub fn publish_impatience(&self, in_force: usize, overflows: u64) {
        self.impatience.in_force.store(in_force, Ordering::Relaxed);
        self.impatience.overflows.store(overflows, Ordering::Relaxed);
    }
}

impl MetricGroup for ImpatienceFigures {
    fn title(&self) -> &'static str {
        FairnessMetrics::TITLE
    }

    fn export(&self, scrape: &mut Scrape) {
        let help = "Sources whose new connections are refused now because their clients ignore Retry-After.";
        scrape.gauge("impatient_sources", help, self.in_force.load(Ordering::Relaxed) as f64);
        let help = "How often a source was not watched, or not listed, because a table was full.";
        scrape.counter("impatient_overflows", help, self.overflows.load(Ordering::Relaxed));
    }
}

impl Label for Cause {
    const NAME: &'static str = "by";
    const ALL: &'static [Self] = &Self::ALL;

    fn index(self) -> usize {
        self.index()
    }

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}
