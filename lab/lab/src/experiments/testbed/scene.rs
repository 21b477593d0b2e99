//! Servers, links and clients of a testbed.

use super::scale::{self, BITS_PER_S, CROWD_PER_S, GOOD_WITHIN, PATIENCE, QUIET_PER_S, RATES};
use super::scope::Scope;
use crate::experiments::Crowd;
use crate::experiments::crowd::Stretched;
use flashweir_workload::{ArrivalProcess, RateProfile};
use std::time::Duration;

/// One run on the testbed: a scene, and what protects the server in it.
#[derive(Clone, Debug, PartialEq)]
pub struct TestbedRun {
    /// The testbed and its clients.
    pub scene: Scene,
    /// The protection of the server.
    pub protection: Protection,
    /// Draws who comes when.
    pub seed: u64,
}

/// Clients, a distant router, the bottleneck, the router, servers; and a crowd.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Between the routers, towards the clients.
    pub bottleneck: Bottleneck,
    /// From the clients to the distant router.
    pub one_way: Duration,
    /// Server that the crowd asks.
    pub server: Server,
    /// Arrivals of the crowd; quiet first.
    pub arrivals: ArrivalProcess,
    /// Seconds of quiet.
    pub quiet_s: u64,
    /// Seconds of crowd.
    pub crowd_s: u64,
    /// People give up.
    pub patience: Duration,
    /// An answer within this time is goodput.
    pub good_within: Duration,
    /// Seconds over which response rates are read.
    pub reading_s: u64,
    /// Clients beside the crowd.
    pub beside: Beside,
}

/// A link with a finite drop-tail buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Its rate.
    pub bits_per_s: u64,
    /// Frames that wait, bytes.
    pub buffer_bytes: u32,
}

/// Server that the crowd asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Server {
    /// nginx with pages of Pareto sizes, all in memory.
    Pages,
    /// The same with memory for a part of the pages only, on a disk of limited rate.
    PagesShortOfMemory {
        /// All the server and its page cache may have.
        memory_bytes: u64,
        /// Each page is as long.
        page_bytes: u64,
        /// Number of pages.
        pages: u32,
        /// Rate of the disk, bytes a second.
        disk_bytes_per_s: u64,
    },
    /// `flashweir origin` with one worker.
    Processor {
        /// Processor time of a request.
        work_ms: f64,
    },
}

/// Clients beside the crowd.
#[derive(Clone, Debug, PartialEq)]
pub enum Beside {
    /// No clients.
    NoClients,
    /// People who read pages of a separate server behind the same router.
    Readers {
        /// Per second.
        per_s: f64,
    },
    /// One client of a separate server, which sends without end.
    Download,
    /// Two more clients of the same server.
    Clients {
        /// One that is never refused.
        uncontrolled: ArrivalProcess,
        /// One that is refused as the crowd is, unless it is spared a part.
        second: ArrivalProcess,
    },
}

/// Protection against the crowd.
#[derive(Clone, Debug, PartialEq)]
pub enum Protection {
    /// Nothing.
    None,
    /// A gate on the router that drops new connections beyond a rate.
    Static {
        /// New connections a second.
        per_s: f64,
    },
    /// `flashweir router` as in the paper: NEWS, and new connections are dropped.
    News {
        /// Its mode.
        mode: &'static str,
        /// T, in our seconds.
        interval_s: u64,
        /// True if only the hot spot is limited.
        hot_spots: bool,
    },
    /// A gate before the server that drops all new connections of the crowd and the second client while too
    /// many wait at the server.
    Threshold {
        /// Begins.
        discard: u64,
        /// Ends.
        abate: u64,
        /// Connections a second of the second client that are admitted all the same.
        spared_per_s: Option<f64>,
    },
}

impl Scene {
    /// NEWS's testbed, the network being what is short (§8.2).
    pub(super) fn network_limited(scope: &Scope) -> Self {
        let arrivals = crowd(&scope.crowd, scope.quiet_s, scope.crowd_s, QUIET_PER_S);
        Self {
            bottleneck: Bottleneck { bits_per_s: (BITS_PER_S * RATES) as u64, buffer_bytes: BUFFER_BYTES },
            one_way: ONE_WAY,
            server: Server::Pages,
            arrivals: ArrivalProcess::Poisson(arrivals),
            quiet_s: scope.quiet_s,
            crowd_s: scope.crowd_s,
            patience: PATIENCE,
            good_within: GOOD_WITHIN,
            reading_s: scale::INTERVAL_S,
            beside: Beside::NoClients,
        }
    }

    /// The scene under each protection, once for each round.
    pub(super) fn runs(
        &self,
        scope: &Scope,
        protections: impl IntoIterator<Item = Protection>,
    ) -> Vec<TestbedRun> {
        let seeds = || (0..u64::from(scope.rounds)).map(|round| scope.seed + round);
        let runs = protections.into_iter().flat_map(|protection| {
            seeds().map(move |seed| TestbedRun { scene: self.clone(), protection: protection.clone(), seed })
        });
        runs.collect()
    }

    /// All of it.
    #[must_use]
    pub fn length_s(&self) -> u64 {
        self.quiet_s + self.crowd_s
    }

    /// Second at which the crowd begins.
    #[must_use]
    pub fn onset_s(&self) -> u64 {
        self.quiet_s
    }
}

impl Protection {
    /// As rows name it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Static { .. } => "static".to_owned(),
            Self::News { mode, .. } => (*mode).to_owned(),
            Self::Threshold { spared_per_s: None, .. } => "dropping".to_owned(),
            Self::Threshold { spared_per_s: Some(_), .. } => "dropping, half of one".to_owned(),
        }
    }

    /// NEWS with the scale's interval.
    pub(super) const fn news(mode: &'static str) -> Self {
        Self::News { mode, interval_s: scale::INTERVAL_S, hot_spots: false }
    }

    /// Effort of the run, for a reader who waits.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::None => "no protection".to_owned(),
            Self::Static { per_s } => format!("a static limit of {per_s:.0}/s"),
            Self::News { mode, interval_s, hot_spots } => {
                let on = if *hot_spots { ", hot spots" } else { "" };
                format!("NEWS ({mode}, T = {interval_s} s{on})")
            }
            Self::Threshold { discard, spared_per_s: None, .. } => format!("dropping while {discard} wait"),
            Self::Threshold { discard, spared_per_s: Some(per_s), .. } => {
                format!("dropping all but {per_s:.1}/s of one client while {discard} wait")
            }
        }
    }
}

/// The modes of NEWS that are run: its authors' code, and ours.
pub(super) const NEWS_MODES: [&str; 2] = ["scoreboard", REPAIRED];
pub(super) const REPAIRED: &str = "repaired";

/// The game's crowd at our scale.
fn crowd(crowd: &Crowd, quiet_s: u64, crowd_s: u64, quiet_per_s: f64) -> RateProfile {
    let stretched = |length_s, mean| Stretched { length: Duration::from_secs(length_s), mean: mean * RATES };
    crowd.arrivals(stretched(quiet_s, quiet_per_s), stretched(crowd_s, CROWD_PER_S))
}

/// 84 ms at the bottleneck's rate, as in the simulator's testbed.
const BUFFER_BYTES: u32 = 105_000;
/// A continent: no two of the paper's machines had the same, and it gives none.
const ONE_WAY: Duration = Duration::from_millis(40);
