//! Link of a gateway that shares its limit to a carrier of the messages on another thread, as that of
//! Kubernetes, which the gateway does not know. Messages are sealed bytes: the carrier can neither read nor
//! forge them.
//!
//! The gateway has a [`ClusterLink`], the carrier the [`ClusterCarrier`] at its other end. All queues are
//! bounded; of reports and of what is wanted only the newest counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Messages that wait for the gateway: a report of each of some gateways. More of them wait at the carrier.
const ARRIVALS: usize = 64;

/// The lease, while this gateway holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The term: larger than that of every holder before.
    pub term: u64,
    /// From then on another may hold it.
    pub until: Instant,
}

/// A gateway's request for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidacy {
    /// True if the gateway wants the lease; false if it gives it up.
    pub stands: bool,
    /// The term has to be at least this: all below are known to have been used.
    pub least_term: u64,
}

/// Message that arrives at a gateway.
#[derive(Debug)]
pub enum ClusterArrival {
    /// A sealed report of another gateway, which takes this one for the leader.
    Report {
        /// The message.
        sealed: Vec<u8>,
        /// Takes the sealed answer.
        answer: oneshot::Sender<Result<Vec<u8>, ReportRefusal>>,
    },
    /// The leader's sealed answer to a report of this gateway.
    Share(Vec<u8>),
    /// There is no answer; why, in words.
    Missing(String),
}

/// Reason for which a report has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    /// This gateway does not lead, or no longer.
    #[error("this gateway does not lead")]
    NotLeading,
    /// It is no report of this cluster.
    #[error("{0}")]
    Report(String),
}

/// Counts of the carrier, for metrics.
#[derive(Debug, Default)]
pub struct CarrierCounts {
    lease_writes: AtomicU64,
}

impl CarrierCounts {
    /// Sets the number of writes of the lease that were asked for since the start.
    pub fn set_lease_writes(&self, writes: u64) {
        self.lease_writes.store(writes, Ordering::Relaxed);
    }

    /// Writes of the lease that were asked for.
    #[must_use]
    pub fn lease_writes(&self) -> u64 {
        self.lease_writes.load(Ordering::Relaxed)
    }
}

/// The gateway's end.
#[derive(Debug)]
pub struct ClusterLink {
    /// The lease; none while this gateway does not hold it.
    pub lease: watch::Receiver<Option<HeldLease>>,
    /// Messages that arrive.
    pub arrivals: mpsc::Receiver<ClusterArrival>,
    /// The newest sealed report.
    pub report: watch::Sender<Vec<u8>>,
    /// Candidacy of this gateway for the lease.
    pub candidacy: watch::Sender<Candidacy>,
    /// Counts of the carrier.
    pub counts: Arc<CarrierCounts>,
}

/// The carrier's end.
#[derive(Debug)]
pub struct ClusterCarrier {
    /// The lease.
    pub lease: watch::Sender<Option<HeldLease>>,
    /// Takes what arrives.
    pub arrivals: mpsc::Sender<ClusterArrival>,
    /// The newest sealed report, to be carried to the leader.
    pub report: watch::Receiver<Vec<u8>>,
    /// Candidacy of the gateway for the lease. Closed: the gateway is gone.
    pub candidacy: watch::Receiver<Candidacy>,
    /// Counts what is done.
    pub counts: Arc<CarrierCounts>,
}

/// Both ends. The gateway stands for leadership once it says so.
#[must_use]
pub fn cluster_link() -> (ClusterLink, ClusterCarrier) {
    let (lease_in, lease) = watch::channel(None);
    let (arrivals_in, arrivals) = mpsc::channel(ARRIVALS);
    let (report, report_out) = watch::channel(Vec::new());
    let (candidacy, candidacy_out) = watch::channel(Candidacy { stands: false, least_term: 1 });
    let counts = Arc::<CarrierCounts>::default();
    let carrier = ClusterCarrier {
        lease: lease_in,
        arrivals: arrivals_in,
        report: report_out,
        candidacy: candidacy_out,
        counts: counts.clone(),
    };
    (ClusterLink { lease, arrivals, report, candidacy, counts }, carrier)
}
