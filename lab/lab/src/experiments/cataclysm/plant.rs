//! The servers and the policies that all experiments on Cataclysm share, and how they were chosen.
//!
//! Of its servers the paper gives one fact: about 60 requests a second each, with a 95th percentile of 1 s.
//! An exponential service time of 15.5 ms on a server that shares its processor out fairly gives that
//! (CAT-CAP shows it). Three servers are three processors that share all requests: as if each request went to
//! a server with the fewest.

use crate::experiments::Options;
use flashweir_admission::sentry::{ClassPolicy, Policing, Policy, Published, PublishedRule};
use flashweir_sim::request::{ClassModel, SentryPolicy, ServerModel, Work};
use std::time::Duration;

/// Time that a request takes alone (S).
pub(super) const SERVICE_TIME: Duration = Duration::from_micros(15_500);
/// Servers of one application in the paper's experiments.
pub(super) const SERVERS: u32 = 3;
/// The paper's target for response times at these rates (its table 1).
pub(super) const TARGET: Duration = Duration::from_secs(1);
/// Most important first.
pub(super) const CLASSES: [&str; 3] = ["gold", "silver", "bronze"];
/// No request gives up: an admitted one is served, however late.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The policy that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A published policy, which is given servers and service time.
    Published(Published),
    /// The sentry's defaults: reservation under a learned limit. It is given the target and the revenue of
    /// classes.
    Ours,
}

impl Mode {
    /// Rounds with gaps of 0, 50 and 100 ms, the paper's setting. With q = 1 the test bounds a mean, with 3
    /// the 95th percentile of exponential times.
    pub(super) const fn batch(quantile: u32, is_whole: bool) -> Self {
        Self::published(PublishedRule::Batch { delay_step: Duration::from_millis(50), is_whole }, quantile)
    }

    /// Trunk reservation in steps of `step` places on each server, bounded for the 95th percentile.
    pub(super) const fn reservation(step: u32) -> Self {
        Self::published(PublishedRule::Reservation { step }, 3)
    }

    /// A threshold found again in every period, for servers of this utilisation, thousandths; the rates of
    /// the last period count seven tenths.
    pub(super) const fn threshold(period_s: u64, utilisation_milli: u32, is_capped: bool) -> Self {
        let period = Duration::from_secs(period_s);
        Self::published(
            PublishedRule::Threshold { period, newest_milli: 700, utilisation_milli, is_capped },
            3,
        )
    }

    const fn published(rule: PublishedRule, quantile: u32) -> Self {
        let quantile_milli = quantile * 1_000;
        Self::Published(Published { rule, servers: SERVERS, service_time: SERVICE_TIME, quantile_milli })
    }

    pub(super) fn policy(self) -> SentryPolicy {
        let policing = match self {
            Self::Published(published) => Policing::Published(published),
            Self::Ours => Policing::default(),
        };
        let class = |revenue| ClassPolicy { revenue, ..ClassPolicy::default() };
        // Only the order counts.
        let classes = [3.0, 2.0, 1.0].map(class).to_vec();
        SentryPolicy::new(Policy { classes, policing, ..Policy::single(TARGET) })
    }
}

/// The people of a class. An answer within the target is goodput.
pub(super) fn class(place: usize) -> ClassModel {
    ClassModel {
        // The scenarios have three classes.
        policy_class: place as u8,
        timeout: TIMEOUT,
        good_within: TARGET,
        ..ClassModel::new(CLASSES[place], Work::Exponential { mean: SERVICE_TIME })
    }
}

pub(super) fn servers(count: u32) -> ServerModel {
    ServerModel::processor_sharing(count)
}

/// Differences between these runs and the paper's.
pub(super) fn notes(options: &Options, seeds: u32) -> Vec<String> {
    vec![
        "The service time (15.5 ms, exponential) was chosen so that a server carries about 60/s at a 95th percentile of \
         1 s, the one thing that the paper tells of its servers. So no value may be claimed as matched, only shapes."
            .to_owned(),
        "Three servers are three processors that share all requests. Nobody gives up and nobody tries again, and the \
         servers take all that is let in: the paper's had a bound (Apache's MaxClients)."
            .to_owned(),
        format!("{seeds} seed(s), from {}; the paper tells of one run.", options.seed),
    ]
}
