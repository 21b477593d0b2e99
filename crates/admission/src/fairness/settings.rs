//! Settings of fair shares among clients. None needs to be touched.

use flashweir_core::Duration;

/// Settings of [`super::Fairness`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairnessSettings {
    /// Period of shares. Default 0.25 s; at least a millisecond is used.
    pub period: Duration,
    /// Memory of cost rates. Default 2 s: longer forgives bursts (a page and its assets), and finds heavy clients later.
    pub averaging: Duration,
    /// How long a client counts as active. Default 10 s; less makes shares larger than they are where clients come rarely.
    pub window: Duration,
    /// Values that are kept of each sign, and people. Default 2048 (30 B each for a sign): a fifth of those that are active is enough.
    pub cached: usize,
}

impl Default for FairnessSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(250),
            averaging: Duration::from_secs(2),
            window: Duration::from_secs(10),
            cached: 2_048,
        }
    }
}
