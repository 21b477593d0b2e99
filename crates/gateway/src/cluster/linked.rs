//! The engine whose messages another crate carries (`flashweir_runtime::ClusterLink`), as that of Kubernetes
//! does: there the gateway that holds the Lease leads, and the others report to it over streams of gRPC, an
//! answer to each report.
//!
//! The carrier says until when the lease is held. This is looked at before each answer: a gateway that stood
//! still for longer says nothing any more. A gateway that is stopping gives the lease up, so that another
//! need not wait for its end.

use super::elected::Elected;
use super::message::Report;
use super::received::refuse;
use super::{Cluster, REPORT_EVERY, STEP_EVERY};
use crate::shared::Shared;
use flashweir_core::Instant;
use flashweir_runtime::{Candidacy, ClusterArrival, ClusterLink, HeldLease, ReportRefusal};
use flashweir_telemetry::BroadcastOutcome;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{Instant as TimerInstant, MissedTickBehavior, interval};

struct Linked {
    elected: Elected,
    lease: watch::Receiver<Option<HeldLease>>,
    report: watch::Sender<Vec<u8>>,
    candidacy: watch::Sender<Candidacy>,
    /// The number of the report that was answered last.
    answered: u64,
}

/// Takes part in the cluster until the future is dropped.
pub(super) async fn run(shared: Arc<Shared>, cluster: Arc<Cluster>, link: ClusterLink) {
    let ClusterLink { lease, mut arrivals, report, candidacy, counts } = link;
    let elected = Elected::new(&shared, &cluster);
    let mut gateway = Linked { elected, lease, report, candidacy, answered: 0 };
    let mut steps = interval(STEP_EVERY);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut report_at = Instant::ZERO;
    loop {
        tokio::select! {
            _ = steps.tick() => {}
            Some(arrival) = arrivals.recv() => {
                gateway.take(arrival);
                continue;
            }
        }
        let now = shared.clock.now();
        gateway.follow_lease();
        if now >= report_at {
            report_at = now + REPORT_EVERY;
            shared.telemetry.control().publish_lease_writes(counts.lease_writes());
            gateway.report(now);
        }
        if let Some(broadcast) = gateway.elected.step(now) {
            cluster.apply(now, &broadcast);
        }
    }
}

impl Linked {
    /// Leads while the lease is held, and in no term that was used before.
    fn follow_lease(&self) {
        let held = self.lease.borrow().filter(|held| held.until > TimerInstant::now());
        let stands = !self.elected.shared.is_draining();
        match (held.filter(|_| stands), self.elected.term()) {
            (None, Some(_)) => self.elected.step_down(),
            (Some(held), None) if held.term > self.elected.cluster.term() => {
                // The others learn the term from the answers to their reports.
                let _hello = self.elected.begin_term(held.term);
            }
            _ => {}
        }
        let least_term = self.elected.term().unwrap_or_else(|| self.elected.cluster.term().saturating_add(1));
        let wanted = Candidacy { stands, least_term };
        self.candidacy.send_if_modified(|known| std::mem::replace(known, wanted) != wanted);
    }

    fn report(&self, now: Instant) {
        let report = self.elected.report(now);
        if self.elected.term().is_some() {
            self.elected.observe(&report);
        } else {
            self.report.send_replace(report.seal(&self.elected.cluster.keys));
        }
    }

    fn take(&mut self, arrival: ClusterArrival) {
        match arrival {
            ClusterArrival::Report { sealed, answer } => {
                self.follow_lease();
                // Who has asked may be gone.
                let _gone = answer.send(self.answer(&sealed));
            }
            ClusterArrival::Share(sealed) => {
                let (own, answered) = (self.elected.cluster.gateway, self.answered);
                let mut answers = (0, answered);
                self.elected.take_share(&sealed, |broadcast| {
                    answers = broadcast.answers;
                    answers.0 == own && answers.1 > answered
                });
                if answers.0 == own {
                    self.answered = answered.max(answers.1);
                }
            }
            ClusterArrival::Missing(why) => {
                let shared = &self.elected.shared;
                refuse(shared, format_args!("no share from the leader: {why}"));
                shared.telemetry.control().cluster_broadcasts.increment(BroadcastOutcome::Missing);
            }
        }
    }

    fn answer(&self, sealed: &[u8]) -> Result<Vec<u8>, ReportRefusal> {
        let refused = |error: super::message::MessageError| ReportRefusal::Report(error.to_string());
        let report: Report = self.elected.take_report(sealed).map_err(refused)?;
        self.elected.answer(&report).ok_or(ReportRefusal::NotLeading)
    }
}
