//! Protections of the server in a run.

use super::network::Network;
use super::protection_record::ProtectionRecord;
use crate::experiments::testbed::{Protection, TestbedRun};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Protection of the server that is in force until it is dropped.
pub(super) enum ActiveProtection {
    Nothing,
    #[cfg(feature = "kernel")]
    Gate(Box<super::gate::Gate>),
    #[cfg(feature = "kernel")]
    Router(super::router::Router),
}

impl ActiveProtection {
    pub(super) fn start(network: &Network, run: &TestbedRun) -> anyhow::Result<Self> {
        match run.protection {
            Protection::None => Ok(Self::Nothing),
            #[cfg(feature = "kernel")]
            Protection::Static { per_s } => {
                super::gate::Gate::with_limit(network, per_s).map(|gate| Self::Gate(Box::new(gate)))
            }
            #[cfg(feature = "kernel")]
            Protection::Threshold { discard, abate, spared_per_s } => {
                let threshold = super::gate::Threshold { discard, abate, spared_per_s };
                super::gate::Gate::with_threshold(network, threshold).map(|gate| Self::Gate(Box::new(gate)))
            }
            #[cfg(feature = "kernel")]
            Protection::News { mode, interval_s, hot_spots } => {
                super::router::Router::start(network, mode, interval_s, hot_spots).map(Self::Router)
            }
            #[cfg(not(feature = "kernel"))]
            _ => {
                let _ = network;
                anyhow::bail!("{} needs a build with the feature `kernel`", run.protection.describe())
            }
        }
    }

    /// Goes on until `over`. `onset_s` seconds after `start` the crowd comes.
    pub(super) fn act(
        self,
        network: &Network,
        start: Instant,
        onset_s: u64,
        over: &AtomicBool,
    ) -> anyhow::Result<ProtectionRecord> {
        match self {
            Self::Nothing => {
                let _ = (network, start, onset_s, over);
                Ok(ProtectionRecord::default())
            }
            #[cfg(feature = "kernel")]
            Self::Gate(gate) => gate.act(over),
            #[cfg(feature = "kernel")]
            Self::Router(router) => router.act(&network.testbed, start, onset_s, over),
        }
    }
}
