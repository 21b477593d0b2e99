//! The process itself: its planners' work, reloads, the state file, warnings.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::ControlMetrics;
use crate::group::{MetricGroup, Scrape};
use crate::label::{Label as _, labels};
use crate::log::{Happening, Warnings};

/// Metrics of every long-running command about itself.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    pub(crate) control: Arc<ControlMetrics>,
    pub(crate) warnings: Arc<Warnings>,
    /// Happenings that this command can have; others are exported, too, where they happen all the same.
    pub(crate) happenings: &'static [Happening],
    pub(crate) version: &'static str,
}

impl MetricGroup for ProcessGroup {
    fn title(&self) -> &'static str {
        "Process"
    }

    fn export(&self, scrape: &mut Scrape) {
        let control = &[&*self.control];
        scrape.counter(
            "samples_judged",
            "Workers' samples the planner took.",
            self.control.samples_judged.value(),
        );
        scrape.histogram("planner_tick_seconds", "Time of one planner tick.", control, |c| &c.planner_tick);
        let help = "Reloads of the configuration; failed ones left the old in force.";
        scrape.counter_set("config_reloads", help, control, |c| &c.config_reloads);
        scrape.counter_set("state_writes", "Writes of the state file.", control, |c| &c.state_writes);
        let help = "Happenings worth a warning; most are counted, few are logged.";
        let count = |happening| self.warnings.value(happening);
        let is_shown = |happening: &Happening| self.happenings.contains(happening) || count(*happening) > 0;
        let shown: Vec<_> = Happening::ALL.iter().copied().filter(is_shown).collect();
        scrape.counters_by("warnings", help, &shown, count);
        scrape.info("build", "The version that runs.", "version", self.version);
    }
}

/// The version alone, of a command that keeps none of the other accounts.
#[derive(Debug)]
pub(crate) struct BuildGroup {
    pub(crate) version: &'static str,
}

impl MetricGroup for BuildGroup {
    fn title(&self) -> &'static str {
        "Version"
    }

    fn export(&self, scrape: &mut Scrape) {
        scrape.info("build", "The version that runs.", "version", self.version);
    }
}

/// Further metrics of a command with workers and a listener.
#[derive(Debug)]
pub(crate) struct WorkersGroup {
    pub(crate) control: Arc<ControlMetrics>,
    pub(crate) workers: usize,
}

impl MetricGroup for WorkersGroup {
    fn title(&self) -> &'static str {
        "Workers"
    }

    fn export(&self, scrape: &mut Scrape) {
        let help = "Reloads of the certificate; failed ones left the old in force.";
        scrape.counter_set("certificate_reloads", help, &[&*self.control], |c| &c.certificate_reloads);
        let draining = self.control.draining.load(Ordering::Relaxed);
        scrape.flag("draining", "1 when no new work is taken.", draining);
        scrape.gauge("workers", "Worker threads.", self.workers as f64);
        let limit = |of: &AtomicUsize| of.load(Ordering::Relaxed) as f64;
        let help = "The limit on open files, each connection being one.";
        scrape.gauge("open_files_limit", help, limit(&self.control.open_files_limit));
        let help = "Connections from clients that are served at once: bounds.max_connections, or what the open files allow.";
        scrape.gauge("connections_limit", help, limit(&self.control.connections_limit));
    }
}

impl ControlMetrics {
    /// Sets whether the gateway takes no new work.
    pub fn set_draining(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
    }

    /// Sets the number of files that may be open, and of connections from clients that are served at once.
    pub fn set_connection_limits(&self, open_files: usize, connections: usize) {
        self.open_files_limit.store(open_files, Ordering::Relaxed);
        self.connections_limit.store(connections, Ordering::Relaxed);
    }
}

labels! {
    /// Outcome of an action that may fail.
    Outcome, "outcome" {
        /// Done.
        Ok => "ok",
        /// Not done; what was before stays in force.
        Failed => "failed",
    }
}
