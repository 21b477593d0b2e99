//! One message, and which messages make no sense.

use crate::FieldError;
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Rate};

/// A node's demand on one sender. Ranks are places in the order of importance, 0 the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Run of the node that speaks; a later run has a larger number (seconds since 1970 at its start, for
    /// instance).
    pub epoch: u32,
    /// Rises with every refresh of one run.
    pub sequence: u32,
    /// The class ceiling: requests of this rank and of less important ones are limited; more important ones
    /// pass.
    pub from_rank: u8,
    /// Number of onset levels that have been crossed; 0 while there is no overload.
    pub severity: u8,
    /// Maximum rate of the limited ranks together to this node; none is a release.
    pub rate: Option<Rate>,
    /// Lifetime of the message from its arrival, whole milliseconds.
    pub ttl: Duration,
}

/// Severity levels at most: the paper has four, and each further one needs another threshold.
pub const SEVERITY_MAX: u8 = 8;
/// The shortest time to live: less than a round trip over a continent would expire on its way.
pub const TTL_MIN: Duration = Duration::from_millis(100);
/// The longest: a sender that hears nothing more stays limited no longer than this.
pub const TTL_MAX: Duration = Duration::from_secs(10);
/// The rate on the wire that stands for none.
const NO_RATE: u32 = u32::MAX;
/// Bytes of the message on the wire, after the byte with version and key.
pub(crate) const BODY_BYTES: usize = 16;

impl Feedback {
    /// Returns whether the message ends a limit.
    #[must_use]
    pub fn is_release(&self) -> bool {
        self.rate.is_none()
    }

    pub(crate) fn to_bytes(self) -> [u8; BODY_BYTES] {
        let rate = match self.rate {
            Some(rate) => u32::try_from(rate.as_milli()).unwrap_or(NO_RATE).min(NO_RATE - 1),
            None => NO_RATE,
        };
        let ttl_ms = u16::try_from(self.ttl.as_millis()).unwrap_or(u16::MAX);
        let mut bytes = [0; BODY_BYTES];
        bytes[..4].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        (bytes[8], bytes[9]) = (self.from_rank, self.severity);
        bytes[10..14].copy_from_slice(&rate.to_be_bytes());
        bytes[14..].copy_from_slice(&ttl_ms.to_be_bytes());
        bytes
    }

    /// # Errors
    /// [`FieldError::Absurd`] for a rank, severity or time to live that no node may send.
    pub(crate) fn from_bytes(bytes: &[u8; BODY_BYTES]) -> Result<Self, FieldError> {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let rate = word(10);
        let ttl_ms = u16::from_be_bytes([bytes[14], bytes[15]]);
        let feedback = Self {
            epoch: word(0),
            sequence: word(4),
            from_rank: bytes[8],
            severity: bytes[9],
            rate: (rate != NO_RATE).then(|| Rate::from_milli(rate.into())),
            ttl: Duration::from_millis(ttl_ms.into()),
        };
        feedback.check()?;
        Ok(feedback)
    }

    /// Checks that a node may say this; the numbers of every message are checked when it is made and when it
    /// is read.
    pub(crate) fn check(&self) -> Result<(), FieldError> {
        let absurd = |what, value: u64, max: u64| Err(FieldError::Absurd { what, value, max });
        if usize::from(self.from_rank) >= CLASSES {
            return absurd("rank", self.from_rank.into(), CLASSES as u64 - 1);
        }
        if self.severity > SEVERITY_MAX {
            return absurd("severity", self.severity.into(), SEVERITY_MAX.into());
        }
        if !(TTL_MIN..=TTL_MAX).contains(&self.ttl) {
            return absurd("time to live, ms,", self.ttl.as_millis() as u64, TTL_MAX.as_millis() as u64);
        }
        Ok(())
    }
}
