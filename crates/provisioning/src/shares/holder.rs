//! The part of the limit that one gateway may use.

use super::{Epoch, ShareBroadcast};
use flashweir_core::{Duration, Instant};

/// A gateway keeps its share for this long after the last broadcast: a leader is found again in seconds.
pub const HOLD: Duration = Duration::from_secs(15);
/// Then its share approaches an equal one for this long.
pub const DECAY: Duration = Duration::from_secs(15);

/// The share of one gateway.
///
/// ```
/// use flashweir_core::{Duration, Instant};
/// use flashweir_provisioning::shares::{Epoch, ShareBroadcast, ShareHolder};
/// let mut holder = ShareHolder::new(7);
/// assert_eq!(holder.share(Instant::ZERO), 0.0);
/// let epoch = Epoch { term: 1, sequence: 1 };
/// let shares = vec![(3, 60.0), (7, 40.0)];
/// assert!(holder.apply(Instant::ZERO, &ShareBroadcast { epoch, limit: 100.0, gateways: 2, shares }));
/// assert_eq!(holder.share(Instant::from_secs(15)), 40.0);
/// assert_eq!(holder.share(Instant::from_secs(30)), 50.0);
/// ```
#[derive(Clone, Debug)]
pub struct ShareHolder {
    gateway: u64,
    epoch: Epoch,
    share: f64,
    /// Limit over the last known number of gateways.
    equal: f64,
    /// Time at which a broadcast had a share for it.
    heard: Option<Instant>,
}

impl ShareHolder {
    /// Without a share: it admits nothing until the first broadcast that has one for it, so that joining is
    /// no jump.
    #[must_use]
    pub fn new(gateway: u64) -> Self {
        Self { gateway, epoch: Epoch::default(), share: 0.0, equal: 0.0, heard: None }
    }

    /// Takes a broadcast. False, and nothing changed, if it is not newer than the last one: a leader that
    /// lost its lease, or a message that was overtaken. O(log gateways).
    pub fn apply(&mut self, now: Instant, broadcast: &ShareBroadcast) -> bool {
        if broadcast.epoch <= self.epoch {
            return false;
        }
        self.equal = broadcast.limit / f64::from(broadcast.gateways.max(1));
        self.epoch = broadcast.epoch;
        // A leader that does not hear this gateway has given its share to the others: as if there were none.
        if let Some(share) = broadcast.share_of(self.gateway) {
            self.share = share.max(0.0);
            self.heard = Some(now);
        }
        true
    }

    /// The newest broadcast that was applied, for the next report.
    #[must_use]
    pub fn applied(&self) -> Epoch {
        self.epoch
    }

    /// The share that may be used now.
    #[must_use]
    pub fn share(&self, now: Instant) -> f64 {
        let Some(heard) = self.heard else { return 0.0 };
        let silent = now.saturating_since(heard).saturating_sub(HOLD);
        let part = (silent.as_secs_f64() / DECAY.as_secs_f64()).min(1.0);
        self.share + (self.equal - self.share) * part
    }
}
