//! The metrics of the programs in the kernel.

use core::fmt;

use super::{About, Catalogue, Sink, Values};
use crate::kernel::{KernelCounts, KernelFigures, KernelFlows, KernelQueue, KernelService, KernelTier};

const SERVICE: &[&str] = &["service"];
const SERVICE_AND_HOW: &[&str] = &["service", "how"];
const SERVICE_AND_RANK: &[&str] = &["service", "rank"];
const REASON: &[&str] = &["reason"];

impl Catalogue {
    pub(super) fn visit_kernel(&self, sink: &mut dyn Sink) -> fmt::Result {
        let figures = self.control.kernel();
        let services = figures.as_ref().map_or(&[][..], |figures| &figures.services);
        visit_connections(sink, services)?;
        visit_tiers(sink, services)?;
        visit_answers(sink, services)?;
        visit_gate(sink, figures.as_ref())?;
        visit_flows(sink, figures.as_ref().and_then(|figures| figures.flows))?;
        visit_queue(sink, figures.as_ref().and_then(|figures| figures.queue))
    }
}

fn visit_connections(sink: &mut dyn Sink, services: &[KernelService]) -> fmt::Result {
    let counted: [(About, Count); 7] = [
        (
            About::new(
                "kernel_connections_offered",
                "New connections that arrived at the gate in the kernel.",
            ),
            |c| c.offered,
        ),
        (
            About::new(
                "kernel_connections_unique_offered",
                "Those without retransmissions of attempts that were refused.",
            ),
            |c| c.unique_offered,
        ),
        (About::new("kernel_connections_admitted", "New connections the kernel let in."), |c| c.admitted),
        (
            About::new("kernel_connections_failed_open", "Of those, let in because user space was silent."),
            |c| c.failed_open,
        ),
        (About::new("kernel_connections_shadowed", "Of those, refused but for shadow mode."), |c| c.shadowed),
        (
            About::new("kernel_connections_preferred_offered", "Of those offered, from preferred networks."),
            |c| c.preferred_offered,
        ),
        (
            About::new(
                "kernel_connections_preferred_admitted",
                "Of those admitted, from preferred networks.",
            ),
            |c| c.preferred_admitted,
        ),
    ];
    for (about, count) in counted {
        sink.metric(about, series(services, count))?;
    }
    let refused = services.iter().flat_map(|service| {
        let KernelCounts { dropped, reset, answered, purged, .. } = service.counts;
        let by_how = [("dropped", dropped), ("reset", reset), ("answered", answered), ("purged", purged)];
        by_how.map(|(how, count)| (vec![service.name.clone(), how.to_owned()], count as f64))
    });
    sink.metric(
        About::new(
            "kernel_connections_refused",
            "New connections refused in the kernel: offered = admitted + refused.",
        ),
        Values::CounterSeries(SERVICE_AND_HOW, refused.collect()),
    )?;
    let ceilings =
        services.iter().filter_map(|service| Some((vec![service.name.clone()], service.ceiling_per_s?)));
    sink.metric(
        About::new(
            "kernel_ceiling_connections_per_second",
            "Ceiling on new connections in the kernel; absent when open.",
        ),
        Values::GaugeSeries(SERVICE, ceilings.collect()),
    )
}

fn visit_tiers(sink: &mut dyn Sink, services: &[KernelService]) -> fmt::Result {
    let counted: [(About, TierCount); 3] = [
        (
            About::new(
                "kernel_tier_connections_offered",
                "New connections by rank, preferred networks left out; absent where all are equal.",
            ),
            |tier| tier.offered,
        ),
        (About::new("kernel_tier_connections_admitted", "Of those, let in."), |tier| tier.admitted),
        (
            About::new("kernel_tier_connections_refused", "Of those, refused: offered = admitted + refused."),
            KernelTier::refused,
        ),
    ];
    for (about, count) in counted {
        let of_service = |service: &KernelService| {
            let labels = |rank: usize| vec![service.name.clone(), rank.to_string()];
            let ranked = service.tiers.iter().enumerate();
            ranked.map(|(rank, tier)| (labels(rank), count(*tier) as f64)).collect::<Vec<_>>()
        };
        let series = services.iter().flat_map(of_service).collect();
        sink.metric(about, Values::CounterSeries(SERVICE_AND_RANK, series))?;
    }
    Ok(())
}

fn visit_answers(sink: &mut dyn Sink, services: &[KernelService]) -> fmt::Result {
    let counted: [(About, Count); 4] = [
        (About::new("kernel_responses", "Responses of the kernel's own that were sent."), |c| c.responses),
        (
            About::new(
                "kernel_late_resets",
                "Answered connections that spoke no HTTP/1 or went on after their end, and were reset.",
            ),
            |c| c.late_resets,
        ),
        (
            About::new(
                "kernel_segments_absorbed",
                "Other segments of answered connections that ended in the kernel.",
            ),
            |c| c.absorbed,
        ),
        (
            About::new(
                "kernel_replies_unsent",
                "Replies of the kernel's own for which a packet had no room.",
            ),
            |c| c.unsent,
        ),
    ];
    for (about, count) in counted {
        sink.metric(about, series(services, count))?;
    }
    Ok(())
}

fn visit_gate(sink: &mut dyn Sink, figures: Option<&KernelFigures>) -> fmt::Result {
    let passed = figures.map_or(&[][..], |figures| &figures.passed);
    let passed = passed.iter().map(|&(reason, count)| (vec![reason.to_owned()], count as f64));
    sink.metric(
        About::new("kernel_frames_passed", "Frames that went by the gate in the kernel unjudged, by reason."),
        Values::CounterSeries(REASON, passed.collect()),
    )?;
    let gauges: [(About, Figure); 3] = [
        (About::new("kernel_interfaces", "Interfaces guarded in the kernel at this moment."), |figures| {
            figures.interfaces as f64
        }),
        (About::new("kernel_generation", "Number of the plan in force in the kernel."), |figures| {
            figures.generation as f64
        }),
        (
            About::in_seconds(
                "kernel_heartbeat_age",
                "Time from one sign of life to the next, as last seen; beyond 3 the kernel let everything in meanwhile.",
            ),
            |figures| figures.heartbeat_age_s,
        ),
    ];
    for (about, value) in gauges {
        sink.metric(about, Values::Gauge(figures.map(value)))?;
    }
    Ok(())
}

fn visit_flows(sink: &mut dyn Sink, flows: Option<KernelFlows>) -> fmt::Result {
    sink.metric(
        About::new("kernel_flows", "Flows that a router follows."),
        Values::Gauge(flows.map(|flows| flows.tracked as f64)),
    )?;
    let counted: [(About, FlowCount); 5] = [
        (About::new("kernel_flows_begun", "Flows that a router began to follow."), |flows| flows.begun),
        (About::new("kernel_flows_evicted", "Flows forgotten to make room for others."), |flows| {
            flows.evicted
        }),
        (About::new("kernel_flows_expired", "Flows forgotten because they had been silent."), |flows| {
            flows.expired
        }),
        (
            About::new("kernel_flows_left_out", "Flows never followed, because there was no place for them."),
            |flows| flows.left_out,
        ),
        (
            About::new(
                "kernel_attempts_left_out",
                "New connections let in whose destination had no place in the table of destinations.",
            ),
            |flows| flows.attempts_left_out,
        ),
    ];
    for (about, count) in counted {
        sink.metric(about, Values::KnownCounter(flows.map(count)))?;
    }
    Ok(())
}

fn visit_queue(sink: &mut dyn Sink, queue: Option<KernelQueue>) -> fmt::Result {
    let counted: [(About, QueueCount); 3] = [
        (About::new("kernel_queue_packets", "Packets through the observed interface's queue."), |queue| {
            queue.packets
        }),
        (About::new("kernel_queue_dropped", "Packets that queue dropped."), |queue| queue.dropped),
        (About::new("kernel_queue_marked", "Packets that queue marked (ECN)."), |queue| queue.marked),
    ];
    for (about, count) in counted {
        sink.metric(about, Values::KnownCounter(queue.map(count)))?;
    }
    sink.metric(
        About::in_bytes("kernel_queue_backlog", "Bytes that wait in that queue."),
        Values::Gauge(queue.map(|queue| queue.backlog_bytes as f64)),
    )
}

type TierCount = fn(KernelTier) -> u64;
type Count = fn(&KernelCounts) -> u64;
type Figure = fn(&KernelFigures) -> f64;
type FlowCount = fn(KernelFlows) -> u64;
type QueueCount = fn(KernelQueue) -> u64;

fn series(services: &[KernelService], count: Count) -> Values {
    let counts = services.iter().map(|service| (vec![service.name.clone()], count(&service.counts) as f64));
    Values::CounterSeries(SERVICE, counts.collect())
}
