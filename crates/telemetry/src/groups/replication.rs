//! Replication: where requests went, what reports said, which copies were made.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::ControlMetrics;
use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Scrape, WorkerGroup};
use crate::label::labels;

/// Counts of one worker of a distributor or redirector.
#[derive(Debug, Default)]
pub struct ReplicationMetrics {
    /// Requests by where they went.
    pub routed: CounterSet<RoutedTo>,
    /// Requests answered with 503 because they came from a node of the cluster that may not send any further.
    pub loops: Counter,
    /// Requests whose document was not counted, because the worker's table of documents was full.
    pub uncounted: Counter,
}

/// Figures of the control thread of a redirector or replica.
#[derive(Debug, Default)]
pub struct ReplicationFigures {
    /// Copies by what became of them.
    pub copies: CounterSet<CopyChange>,
    /// Reports by what became of them: of a redirector those that came, of a replica those that it sent.
    pub reports: CounterSet<ReplicaReportOutcome>,
    replicas: AtomicUsize,
    usable: AtomicUsize,
    documents: AtomicUsize,
    copied: AtomicUsize,
    is_full: AtomicBool,
}

impl ControlMetrics {
    /// Publishes the redirector's state: replicas, those of them that get requests, documents it knows, those
    /// of them with copies, and whether all replicas together are full.
    pub fn publish_replication(
        &self,
        (replicas, usable): (usize, usize),
        (documents, copied): (usize, usize),
        is_full: bool,
    ) {
        let figures = &self.replication;
        figures.replicas.store(replicas, Ordering::Relaxed);
        figures.usable.store(usable, Ordering::Relaxed);
        figures.documents.store(documents, Ordering::Relaxed);
        figures.copied.store(copied, Ordering::Relaxed);
        figures.is_full.store(is_full, Ordering::Relaxed);
    }
}

impl WorkerGroup for ReplicationMetrics {
    const TITLE: &'static str = "Replication";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Requests that a distributor or redirector routed, by where they went.";
        scrape.counter_set("replication_requests", help, copies, |c| &c.routed);
        scrape.counters(
            copies,
            &[
                ("replication_loops", "Requests answered with 503 because they went in a circle.", |c| {
                    &c.loops
                }),
                (
                    "replication_uncounted",
                    "Requests whose document was not counted, because a table was full.",
                    |c| &c.uncounted,
                ),
            ],
        );
    }
}

impl MetricGroup for ReplicationFigures {
    fn title(&self) -> &'static str {
        "Replication"
    }

    fn export(&self, scrape: &mut Scrape) {
        let all = &[self][..];
        let help = "Copies of documents, by what became of them.";
        scrape.counter_set("replication_copies", help, all, |c| &c.copies);
        let help = "Reports of replicas, by what became of them.";
        scrape.counter_set("replication_reports", help, all, |c| &c.reports);
        let gauge = |value: &AtomicUsize| value.load(Ordering::Relaxed) as f64;
        scrape.gauge("replication_replicas", "Replicas that are configured.", gauge(&self.replicas));
        scrape.gauge("replication_replicas_usable", "Replicas that get requests.", gauge(&self.usable));
        scrape.gauge("replication_documents", "Documents that the redirector knows.", gauge(&self.documents));
        scrape.gauge("replication_documents_copied", "Those at more than one replica.", gauge(&self.copied));
        scrape.flag(
            "replication_full",
            "Whether all replicas together are above the watermark, so that admission limits demand.",
            self.is_full.load(Ordering::Relaxed),
        );
    }
}

labels! {
    /// Destination to which a distributor or redirector sent a request.
    RoutedTo, "to" {
        /// Passed on to a replica or redirector.
        Target => "target",
        /// The client was redirected there.
        Redirect => "redirect",
        /// To the origin: no shared cache may answer it.
        OriginUncacheable => "origin_uncacheable",
        /// To the origin: all replicas together have what they take.
        OriginFull => "origin_full",
        /// To the origin: no replica is usable.
        OriginNoReplica => "origin_no_replica",
    }
    /// Outcome for a copy.
    CopyChange, "change" {
        /// It was placed.
        Created => "created",
        /// It was removed, because there was little demand.
        Dropped => "dropped",
        /// Its document got another home, because all of its hosts were out.
        Rehomed => "rehomed",
        /// It differed from the other copies and is fetched again.
        Differed => "differed",
    }
    /// Outcome for a report.
    ReplicaReportOutcome, "outcome" {
        /// It was taken.
        Taken => "taken",
        /// It was taken with a load that was cut to what a replica can have.
        Bounded => "bounded",
        /// It cannot be read.
        Malformed => "malformed",
        /// It is from a replica that is not configured.
        Unknown => "unknown",
        /// It came too early after the last.
        TooMany => "too_many",
        /// A redirector did not take it.
        NotSent => "not_sent",
    }
}
