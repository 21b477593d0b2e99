//! Election of the leading gateway: the holder of the Lease. The rule is in `lease`; this module decides when
//! the API server is asked.
//!
//! The holder writes the Lease four times within its duration, and nothing else: some two writes a second,
//! for any number of gateways and of reports. The others watch it, and read and write it once its end has
//! come, after a random delay each. A gateway stands only while its Service has it, because the others find
//! the leader there. It says until when it leads; the gateway looks at that before each answer, so one whose
//! writes are refused, or not answered, has stopped before another may begin.

use super::watches::{LONGEST_WAIT, Members, ObservedLease};
use crate::kubernetes::back_off::BackOff;
use crate::kubernetes::cluster::ApiError;
use crate::kubernetes::leader::{Leader, WRITES_PER_DURATION};
use flashweir_core::{Duration, Rng};
use flashweir_runtime::{Candidacy, CarrierCounts, HeldLease, random_u64};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

/// Time for which a write of the holder counts: the longest time without a leader is this and [`SPREAD`].
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// Candidates try within this time of the Lease's end, so that not all of many come at once.
const SPREAD: Duration = Duration::from_millis(200);
/// After a write that another's was before: it is read again.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// A gateway that its Service has not listed for this long logs that.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// One gateway's part in the election.
pub(super) struct Election {
    pub(super) leader: Leader,
    pub(super) own: SocketAddr,
    pub(super) service: String,
    pub(super) members: watch::Receiver<Members>,
    pub(super) observed_lease: watch::Receiver<ObservedLease>,
    pub(super) candidacy: watch::Receiver<Candidacy>,
    pub(super) lease: watch::Sender<Option<HeldLease>>,
    pub(super) counts: Arc<CarrierCounts>,
}

/// Time of the next request to the API server.
struct Tries {
    next: Instant,
    back_off: BackOff,
    rng: Rng,
}

impl Tries {
    fn within(&mut self, from: Instant, spread: Duration) {
        self.next = from + spread.mul_f64(self.rng.unit_f64());
    }
}

impl Election {
    /// Takes part until the gateway is gone.
    pub(super) async fn run(mut self) {
        let now = Instant::now();
        let back_off = BackOff::up_to(random_u64(), LONGEST_WAIT);
        let mut tries = Tries { next: now, back_off, rng: Rng::new(random_u64()) };
        let mut not_listed = Some(now + LISTED_WITHIN);
        loop {
            let is_member = self.members.borrow().as_ref().map(|known| known.contains(&self.own));
            // Before the API server has answered it is not known.
            let (is_member, is_missing) = (is_member == Some(true), is_member == Some(false));
            let wanted = *self.candidacy.borrow();
            if is_member {
                not_listed = None;
            }
            tokio::select! {
                () = sleep_until(tries.next), if is_member && wanted.stands => self.step(&mut tries).await,
                () = sleep_until(not_listed.unwrap_or(now)), if is_missing && not_listed.is_some() => {
                    warn!(
                        own = %self.own, service = self.service,
                        "the Service has no endpoint with this gateway's address and port for reports: it cannot lead"
                    );
                    not_listed = None;
                }
                changed = self.observed_lease.changed() => {
                    if changed.is_err() { return }
                    self.hear(&mut tries);
                }
                changed = self.members.changed() => if changed.is_err() { return },
                changed = self.candidacy.changed() => {
                    // The gateway is gone.
                    if changed.is_err() { return }
                    self.want(&mut tries).await;
                }
            }
            self.publish();
        }
    }

    async fn step(&self, tries: &mut Tries) {
        let began = Instant::now();
        self.leader.set_least_term(self.candidacy.borrow().least_term);
        match self.leader.step().await {
            Ok(()) => {
                if tries.back_off.succeeded() {
                    info!("API server heard again; the gateways' Lease can be had");
                }
                match (self.leader.held(), self.leader.expires_at()) {
                    (Some(_), _) => tries.next = began + LEASE / WRITES_PER_DURATION,
                    (None, Some(expires)) => tries.within(expires, SPREAD),
                    (None, None) => tries.within(began + LEASE / WRITES_PER_DURATION, SPREAD),
                }
            }
            Err(ApiError::Conflict) => tries.within(Instant::now() + AFTER_CONFLICT, SPREAD),
            Err(error) => {
                if !tries.back_off.is_failing() {
                    warn!(%error, "the gateways' Lease cannot be had; without a leader each goes on with its share");
                }
                tries.next = Instant::now() + tries.back_off.failed();
            }
        }
    }

    /// The watch has seen the Lease.
    fn hear(&mut self, tries: &mut Tries) {
        let observed_lease = self.observed_lease.borrow_and_update().clone();
        // The watch lags: the holder learns from its next write that it has lost the Lease.
        let Some(lease) = observed_lease.filter(|_| self.leader.held().is_none()) else { return };
        self.leader.heard(lease.as_ref());
        let soon = Instant::now();
        tries.within(self.leader.expires_at().unwrap_or(soon), SPREAD);
    }

    /// The gateway wants something else.
    async fn want(&mut self, tries: &mut Tries) {
        let wanted = *self.candidacy.borrow_and_update();
        match self.leader.held() {
            Some(_) if !wanted.stands => {
                self.leader.give_up().await;
                info!("the gateways' Lease is given up");
            }
            // A new term of the same holder.
            Some((_, term)) if wanted.least_term > term => tries.next = Instant::now(),
            _ => {}
        }
    }

    fn publish(&self) {
        let held = self.leader.held().map(|(until, term)| HeldLease { term, until });
        self.lease.send_if_modified(|known| std::mem::replace(known, held) != held);
        self.counts.set_lease_writes(self.leader.writes());
    }
}
