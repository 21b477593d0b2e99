//! Settings of fair shares among clients. None needs to be touched.

use flashweir_core::Duration;

/// Settings of [`super::Fairness`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairnessSettings {
    /// Period of shares. Default 0.25 s; at least a millisecond is used.
    pub period: Duration,
    /// Memory of cost rates. Default 5 s: a page and its assets are no heavy client, and a crawler is found
    /// within two or three seconds.
    pub averaging: Duration,
    /// Time for which a person counts as active. Default 30 s: people read a page for about that long.
    pub window: Duration,
}

impl Default for FairnessSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(250),
            averaging: Duration::from_secs(5),
            window: Duration::from_secs(30),
        }
    }
}
