//! Carries a gateway's reports to the one that leads, and the answers back.
//!
//! The leader is the holder of the Lease, if the Service has an endpoint for it: a gateway reports nowhere
//! else. The next report is sent after the answer to the last one, and has what was measured meanwhile. After
//! a failure another connection is tried, ever later, or when the Lease has changed.

use super::stream::ReportStream;
use super::watches::{Members, ObservedLease};
use crate::kubernetes::back_off::BackOff;
use flashweir_core::Duration;
use flashweir_runtime::{ClusterArrival, random_u64};
use std::net::SocketAddr;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

/// A leader that has not answered by then is silent; the next report goes over another connection.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// The longest wait between two connections: a leader is found again within it.
const LONGEST_WAIT: Duration = Duration::from_millis(800);
/// Between two words that there is no leader.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Separator in the name of a holder of the Lease, `ADDRESS_RANDOM`: holders at one address differ in the
/// second part.
const SEPARATOR: char = '_';

/// As what a gateway stands in the Lease: where it takes reports, and a number drawn at its start, because
/// one that restarts is another one.
pub(super) fn identity(own: SocketAddr) -> String {
    format!("{own}{SEPARATOR}{:016x}", random_u64())
}

/// Address at which the holder of a Lease takes reports.
fn address_of(identity: &str) -> Option<SocketAddr> {
    identity.rsplit_once(SEPARATOR)?.0.parse().ok()
}

/// One gateway's reports.
pub(super) struct Reporting {
    pub(super) identity: String,
    pub(super) members: watch::Receiver<Members>,
    pub(super) observed_lease: watch::Receiver<ObservedLease>,
    pub(super) report: watch::Receiver<Vec<u8>>,
    pub(super) arrivals: mpsc::Sender<ClusterArrival>,
}

/// Destination of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    /// Nowhere: this gateway leads.
    Itself,
    /// There.
    At(SocketAddr),
    /// Nowhere: the Lease is held by none, or by one that the Service does not have.
    Unknown,
}

impl Reporting {
    /// Reports until the gateway is gone.
    pub(super) async fn run(mut self) {
        let mut back_off = BackOff::up_to(random_u64(), LONGEST_WAIT);
        while self.report.has_changed().is_ok() {
            match self.leader() {
                Leader::At(address) => {
                    let Err(why) = self.follow(address, &mut back_off).await else { continue };
                    self.say(format!("from {address}: {why}"));
                    tokio::select! {
                        () = sleep(back_off.failed()) => {}
                        () = changed(&mut self.observed_lease, &mut self.members) => {}
                    }
                }
                leader => {
                    tokio::select! {
                        () = sleep(SAY_EVERY), if leader == Leader::Unknown => {
                            self.say("no gateway of the Service holds the Lease".to_owned());
                        }
                        () = changed(&mut self.observed_lease, &mut self.members) => {}
                    }
                }
            }
        }
    }

    fn leader(&self) -> Leader {
        let observed_lease = self.observed_lease.borrow();
        let holder = observed_lease.as_ref().and_then(|lease| lease.as_ref()?.holder.as_deref());
        if holder == Some(self.identity.as_str()) {
            return Leader::Itself;
        }
        let address = holder.and_then(address_of);
        let is_member = |address: &SocketAddr| {
            self.members.borrow().as_ref().is_some_and(|known| known.contains(address))
        };
        address.filter(is_member).map_or(Leader::Unknown, Leader::At)
    }

    /// Reports there until another leads; or why there is no answer.
    async fn follow(&mut self, address: SocketAddr, back_off: &mut BackOff) -> Result<(), String> {
        let silent = |_| format!("no answer within {ANSWER_WITHIN:?}");
        let opened = timeout(ANSWER_WITHIN, ReportStream::open(address)).await.map_err(silent)?;
        let mut stream = opened.map_err(|error| error.to_string())?;
        loop {
            tokio::select! {
                () = changed(&mut self.observed_lease, &mut self.members) => {}
                new = self.report.changed() => if new.is_err() { return Ok(()) },
            }
            if self.leader() != Leader::At(address) {
                return Ok(());
            }
            let report = self.report.borrow_and_update().clone();
            if report.is_empty() {
                continue;
            }
            let answer = timeout(ANSWER_WITHIN, stream.exchange(report)).await.map_err(silent)?;
            let answer = answer.map_err(|error| error.to_string())?;
            let _was_failing = back_off.succeeded();
            if self.arrivals.send(ClusterArrival::Share(answer)).await.is_err() {
                return Ok(());
            }
        }
    }

    /// Says why there is no share. A gateway that has too much to read anyway need not hear it.
    fn say(&self, why: String) {
        let _too_much = self.arrivals.try_send(ClusterArrival::Missing(why));
    }
}

/// Resolves at the next change of either.
async fn changed(
    observed_lease: &mut watch::Receiver<ObservedLease>,
    members: &mut watch::Receiver<Members>,
) {
    // Neither ends before the gateway does.
    tokio::select! {
        _ = observed_lease.changed() => {}
        _ = members.changed() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_the_lease_says_where_reports_go() {
        for text in ["10.244.0.7:9920", "[fd00::7]:9920"] {
            let own: SocketAddr = text.parse().expect("an address");
            assert_eq!(address_of(&identity(own)), Some(own));
            assert_ne!(identity(own), identity(own), "another start is another gateway");
        }
        for strange in ["", "flashweir-control-1", "10.244.0.7:9920", "pod_00ff"] {
            assert_eq!(address_of(strange), None, "{strange}");
        }
    }
}
