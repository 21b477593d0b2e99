//! Counts and state of the programs in the kernel, as user space last read them.
//!
//! Services are called as in the configuration, or by their role (`hot_spot_1`): never by an address.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ControlMetrics;
use crate::group::{MetricGroup, Row, Scrape};
use flashweir_core::kernel_counts::{GateCounts, QueueCounts, TierCounts};

/// Everything of one gate and, behind a router, its observer. Replaced whole by the thread that reads the
/// kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelFigures {
    /// Each protected service.
    pub services: Vec<KernelService>,
    /// Frames that went on unjudged, by reason.
    pub passed: Vec<(&'static str, u64)>,
    /// Interfaces guarded at this moment: fewer than configured when one is gone.
    pub interfaces: usize,
    /// Counts plans put into force.
    pub generation: u64,
    /// Seconds from one sign of life to the next, as last seen.
    pub heartbeat_age_s: f64,
    /// Flows that the observer follows; `None` without one.
    pub flows: Option<KernelFlows>,
    /// The queue of the interface that is observed, where that is known.
    pub queue: Option<QueueCounts>,
}

/// One service in the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelService {
    /// Its name, from a bounded list.
    pub name: String,
    /// The ceiling on new connections per second; `None` lets everything in.
    pub ceiling_per_s: Option<f64>,
    /// Counts since the start.
    pub counts: GateCounts,
    /// Number of ranks that are shown: none where all are equal.
    pub ranks: usize,
}

impl KernelService {
    /// Counts by rank, the most important first, preferred networks left out; empty where all are equal.
    #[must_use]
    pub fn tiers(&self) -> &[TierCounts] {
        self.counts.tiers.get(..self.ranks).unwrap_or(&self.counts.tiers)
    }
}

/// The observer's table of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFlows {
    /// Followed now.
    pub tracked: u64,
    /// Begun since the start.
    pub begun: u64,
    /// Forgotten to make room.
    pub evicted: u64,
    /// Forgotten because they had been silent.
    pub expired: u64,
    /// Never followed, because there was no place.
    pub left_out: u64,
    /// Connection attempts whose destination had no place in the table of destinations.
    pub attempts_left_out: u64,
}

/// The last reading; `None` where there is nothing in the kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelMetrics(Mutex<Option<KernelFigures>>);

impl KernelMetrics {
    fn lock(&self) -> MutexGuard<'_, Option<KernelFigures>> {
        // Replaced whole, so a writer that panicked leaves nothing half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlMetrics {
    /// Publishes the counts of the programs in the kernel, as just read; `None` once there are none any more.
    pub fn publish_kernel(&self, figures: Option<KernelFigures>) {
        *self.kernel.lock() = figures;
    }

    /// The counts of the programs in the kernel that were published last.
    #[must_use]
    pub fn kernel(&self) -> Option<KernelFigures> {
        self.kernel.lock().clone()
    }
}

const SERVICE: &[&str] = &["service"];

/// The gate is every shell's that has one.
impl MetricGroup for KernelMetrics {
    fn title(&self) -> &'static str {
        "Gate in the kernel"
    }

    fn export(&self, scrape: &mut Scrape) {
        let figures = self.lock().clone();
        let services = figures.as_ref().map_or(&[][..], |figures| &figures.services);
        let mut counts = |rows: &[Row<GateCounts, u64>]| {
            for &(name, help, count) in rows {
                let of =
                    |service: &KernelService| (vec![service.name.clone()], count(&service.counts) as f64);
                scrape.counter_series(name, help, SERVICE, services.iter().map(of));
            }
        };
        counts(CONNECTIONS);
        counts(ANSWERS);
        let refused = services.iter().flat_map(|service| {
            let GateCounts { dropped, reset, answered, purged, .. } = service.counts;
            let by_how = [("dropped", dropped), ("reset", reset), ("answered", answered), ("purged", purged)];
            by_how.map(|(how, count)| (vec![service.name.clone(), how.to_owned()], count as f64))
        });
        let help = "New connections refused in the kernel: offered = admitted + refused.";
        scrape.counter_series("kernel_connections_refused", help, &["service", "how"], refused);
        let ceilings =
            services.iter().filter_map(|service| Some((vec![service.name.clone()], service.ceiling_per_s?)));
        let help = "Ceiling on new connections in the kernel; absent when open.";
        scrape.gauge_series("kernel_ceiling_connections_per_second", help, SERVICE, ceilings);
        for &(name, help, count) in TIERS {
            let of_service = |service: &KernelService| -> Vec<(Vec<String>, f64)> {
                let labels = |rank: usize| vec![service.name.clone(), rank.to_string()];
                let ranked = service.tiers().iter().enumerate();
                ranked.map(|(rank, tier)| (labels(rank), count(tier) as f64)).collect()
            };
            scrape.counter_series(name, help, &["service", "rank"], services.iter().flat_map(of_service));
        }
        let passed = figures.iter().flat_map(|figures| &figures.passed);
        let passed = passed.map(|&(reason, count)| (vec![reason.to_owned()], count as f64));
        let help = "Frames that went by the gate in the kernel unjudged, by reason.";
        scrape.counter_series("kernel_frames_passed", help, &["reason"], passed);
        scrape.gauges(GATE, figures.as_ref());
    }
}

const CONNECTIONS: &[Row<GateCounts, u64>] = &[
    ("kernel_connections_offered", "New connections that arrived at the gate in the kernel.", |c| c.offered),
    (
        "kernel_connections_unique_offered",
        "Those without retransmissions of attempts that were refused.",
        |c| c.unique_offered,
    ),
    ("kernel_connections_admitted", "New connections the kernel let in.", |c| c.admitted),
    ("kernel_connections_failed_open", "Of those, let in because user space was silent.", |c| c.failed_open),
    ("kernel_connections_shadowed", "Of those, refused but for shadow mode.", |c| c.shadowed),
    ("kernel_connections_preferred_offered", "Of those offered, from preferred networks.", |c| {
        c.preferred_offered
    }),
    ("kernel_connections_preferred_admitted", "Of those admitted, from preferred networks.", |c| {
        c.preferred_admitted
    }),
];

const TIERS: &[Row<TierCounts, u64>] = &[
    (
        "kernel_tier_connections_offered",
        "New connections by rank, preferred networks left out; absent where all are equal.",
        |tier| tier.offered,
    ),
    ("kernel_tier_connections_admitted", "Of those, let in.", |tier| tier.admitted),
    ("kernel_tier_connections_refused", "Of those, refused: offered = admitted + refused.", |tier| {
        tier.refused()
    }),
];

const ANSWERS: &[Row<GateCounts, u64>] = &[
    ("kernel_responses", "Responses of the kernel's own that were sent.", |c| c.responses),
    (
        "kernel_late_resets",
        "Answered connections that spoke no HTTP/1 or went on after their end, and were reset.",
        |c| c.late_resets,
    ),
    ("kernel_segments_absorbed", "Other segments of answered connections that ended in the kernel.", |c| {
        c.absorbed
    }),
    ("kernel_replies_unsent", "Replies of the kernel's own for which a packet had no room.", |c| c.unsent),
];

const GATE: &[Row<KernelFigures, Option<f64>>] = &[
    ("kernel_interfaces", "Interfaces guarded in the kernel at this moment.", |figures| {
        Some(figures.interfaces as f64)
    }),
    ("kernel_generation", "Number of the plan in force in the kernel.", |figures| {
        Some(figures.generation as f64)
    }),
    (
        "kernel_heartbeat_age_seconds",
        "Time from one sign of life to the next, as last seen; beyond 3 the kernel let everything in meanwhile.",
        |figures| Some(figures.heartbeat_age_s),
    ),
];

/// Traffic that passes by a router.
#[derive(Debug)]
pub(crate) struct ObserverGroup(pub(crate) Arc<KernelMetrics>);

impl MetricGroup for ObserverGroup {
    fn title(&self) -> &'static str {
        "Observer in the kernel"
    }

    fn export(&self, scrape: &mut Scrape) {
        let (flows, queue) = self.0.lock().as_ref().map_or((None, None), |known| (known.flows, known.queue));
        let tracked = flows.map(|flows| flows.tracked as f64);
        scrape.gauge("kernel_flows", "Flows that a router follows.", tracked);
        for &(name, help, count) in FLOWS {
            scrape.counter(name, help, flows.as_ref().map(count));
        }
        for &(name, help, count) in QUEUE {
            scrape.counter(name, help, queue.as_ref().map(count));
        }
        let backlog = queue.map(|queue| queue.backlog_bytes as f64);
        scrape.gauge("kernel_queue_backlog_bytes", "Bytes that wait in that queue.", backlog);
    }
}

const FLOWS: &[Row<KernelFlows, u64>] = &[
    ("kernel_flows_begun", "Flows that a router began to follow.", |flows| flows.begun),
    ("kernel_flows_evicted", "Flows forgotten to make room for others.", |flows| flows.evicted),
    ("kernel_flows_expired", "Flows forgotten because they had been silent.", |flows| flows.expired),
    ("kernel_flows_left_out", "Flows never followed, because there was no place for them.", |flows| {
        flows.left_out
    }),
    (
        "kernel_attempts_left_out",
        "New connections let in whose destination had no place in the table of destinations.",
        |flows| flows.attempts_left_out,
    ),
];

const QUEUE: &[Row<QueueCounts, u64>] = &[
    ("kernel_queue_packets", "Packets through the observed interface's queue.", |queue| queue.packets),
    ("kernel_queue_dropped", "Packets that queue dropped.", |queue| queue.dropped),
    ("kernel_queue_marked", "Packets that queue marked (ECN).", |queue| queue.marked),
];
