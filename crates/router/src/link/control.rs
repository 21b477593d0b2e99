//! From what the classifier counted to what it does next: the rules are `flashweir_aqm`'s. Pure.

use flashweir_aqm::heavy_flows::HeavyFlow;
use flashweir_aqm::{CountedPeriod, Purge, PurgeSettings};
use flashweir_config::{Link, LinkSide};
use flashweir_core::Instant;
use flashweir_core::kernel_counts::LinkCounts;
use flashweir_core::limits::LINK_FLOWS_LISTED;
use flashweir_kernel::link::LinkReading;

/// The longest queue that is computed at ingress, in time of the link: far beyond any target, so that the
/// price has all it needs to rise, and no flood is paid for long after its end.
const COMPUTED_QUEUE_S_MAX: f64 = 1.0;

/// Rates, shares and the price of one link.
#[derive(Debug)]
pub(crate) struct LinkControl {
    purge: Purge,
    bytes_per_s: f64,
    packet_bytes: u64,
    /// Bytes that were sent and are not yet a packet of the usual size.
    remainder_bytes: u64,
    /// The queue at the far end, as far as what arrived says; at ingress only.
    computed_queue_bytes: Option<f64>,
    read_at: Instant,
}

/// Decision after one period.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinkDecision {
    /// Probability of a mark, in 2⁻³².
    pub(crate) mark: u32,
    /// Flows that are cut, by hash, with the probability of a drop in 2⁻³².
    pub(crate) cuts: Vec<(u64, u32)>,
    pub(crate) active_flows: f64,
    pub(crate) share_bytes_per_s: f64,
    pub(crate) price: f64,
    pub(crate) mark_probability: f64,
    pub(crate) backlog_bytes: f64,
    /// The flows that are cut most, at most [`LINK_FLOWS_LISTED`].
    pub(crate) most_cut: Vec<HeavyFlow>,
}

impl LinkControl {
    pub(crate) fn new(link: &Link, now: Instant) -> Self {
        let settings = PurgeSettings::of_link(link.rate_bits_per_s, link.target);
        Self {
            purge: Purge::new(&settings, link.rate_bits_per_s),
            bytes_per_s: link.rate_bits_per_s as f64 / 8.0,
            packet_bytes: settings.rem.packet_bytes.into(),
            remainder_bytes: 0,
            computed_queue_bytes: (link.side == LinkSide::Ingress).then_some(0.0),
            read_at: now,
        }
    }

    /// Takes what was counted until `now`, with the bytes that wait in the interface's queue. About 100 µs.
    pub(crate) fn take(&mut self, now: Instant, reading: &LinkReading, waiting_bytes: u64) -> LinkDecision {
        let elapsed_s = now.saturating_since(std::mem::replace(&mut self.read_at, now)).as_secs_f64();
        let backlog_bytes = self.backlog_bytes(elapsed_s, &reading.counts, waiting_bytes);
        let sent_bytes = self.remainder_bytes + reading.counts.sent_bytes();
        self.remainder_bytes = sent_bytes % self.packet_bytes;
        let sketches: Vec<&[[u32; 3]]> = reading.sketches.iter().map(|sketch| &sketch[..]).collect();
        let period = CountedPeriod {
            sketches: &sketches,
            flows: &reading.flows,
            queued_packets: u32::try_from(sent_bytes / self.packet_bytes).unwrap_or(u32::MAX),
            queue_packets: (backlog_bytes / self.packet_bytes as f64) as usize,
        };
        self.purge.take_period(now, &period);
        self.decision(backlog_bytes)
    }

    fn backlog_bytes(&mut self, elapsed_s: f64, counts: &LinkCounts, waiting_bytes: u64) -> f64 {
        let Some(queue) = &mut self.computed_queue_bytes else { return waiting_bytes as f64 };
        let longest = self.bytes_per_s * COMPUTED_QUEUE_S_MAX;
        *queue = (*queue + counts.sent_bytes() as f64 - self.bytes_per_s * elapsed_s).clamp(0.0, longest);
        *queue
    }

    fn decision(&self, backlog_bytes: f64) -> LinkDecision {
        let purge = &self.purge;
        let mut cut: Vec<HeavyFlow> =
            purge.heavy_flows().iter().filter(|flow| flow.drop_probability > 0.0).collect();
        cut.sort_by(|one, other| other.drop_probability.total_cmp(&one.drop_probability));
        LinkDecision {
            mark: in_32_bits(purge.mark_probability()),
            cuts: cut.iter().map(|flow| (flow.flow, in_32_bits(flow.drop_probability))).collect(),
            active_flows: purge.active_flows(),
            share_bytes_per_s: purge.share_bytes_per_s(),
            price: purge.price(),
            mark_probability: purge.mark_probability(),
            backlog_bytes,
            most_cut: cut.into_iter().take(LINK_FLOWS_LISTED).collect(),
        }
    }
}

/// A probability in 2⁻³².
fn in_32_bits(probability: f64) -> u32 {
    // `as` saturates.
    (probability.clamp(0.0, 1.0) * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_aqm::MinSketch;
    use flashweir_config::LinkFlow;
    use flashweir_core::Duration;

    const PERIOD_MS: u64 = 250;
    /// A link of 10 Mb/s: what it carries in a period.
    const PERIOD_BYTES: u64 = 312_500;

    fn control(side: LinkSide) -> LinkControl {
        let link = Link {
            interface: "eth0".to_owned(),
            rate_bits_per_s: 10_000_000,
            side,
            flow: LinkFlow::FiveTuple,
            target: Duration::from_millis(50),
        };
        LinkControl::new(&link, Instant::ZERO)
    }

    /// Hashes that differ where tables and sketch look.
    fn hash(flow: u64) -> u64 {
        flashweir_core::hash::mix(flow)
    }

    /// A period in which each flow sent these bytes, of which `purged` were dropped.
    fn reading(flows: &[u64], purged: u64) -> LinkReading {
        let mut sketch = MinSketch::new();
        (1..=flows.len() as u64).for_each(|flow| sketch.insert(hash(flow)));
        let residues: [[u32; 3]; 1_024] = sketch.residues().try_into().expect("as many buckets");
        let counts =
            LinkCounts { offered_bytes: flows.iter().sum(), purged_bytes: purged, ..LinkCounts::default() };
        let flows = (1..).map(hash).zip(flows.iter().copied()).collect();
        LinkReading { sketches: vec![Box::new(residues)], flows, counts }
    }

    fn after(control: &mut LinkControl, periods: u64, reading: &LinkReading, waiting: u64) -> LinkDecision {
        let began = control.read_at;
        let mut last = LinkDecision::default();
        for period in 1..=periods {
            last = control.take(began + Duration::from_millis(period * PERIOD_MS), reading, waiting);
        }
        last
    }

    #[test]
    fn the_flow_over_its_share_is_cut_to_it_and_the_others_are_not() {
        let mut control = control(LinkSide::Egress);
        let mut flows = vec![PERIOD_BYTES / 20; 10];
        flows.push(PERIOD_BYTES * 9 / 10);
        // The queue is at its target, so no flow is given more than a share.
        let decision = after(&mut control, 20, &reading(&flows, PERIOD_BYTES * 3 / 4), 62_500);
        assert_eq!(decision.active_flows, 11.0);
        let [(flow, drop)] = decision.cuts[..] else { panic!("{decision:?}") };
        let expected = 1.0 - 10.0 / 11.0 / 9.0;
        assert_eq!(flow, hash(11));
        assert!((f64::from(drop) / 4_294_967_296.0 - expected).abs() < 0.01, "{decision:?}");
        assert_eq!(decision.most_cut.len(), 1);
    }

    #[test]
    fn a_long_queue_raises_the_price_and_an_idle_link_lowers_it_to_nothing() {
        let mut control = control(LinkSide::Egress);
        let even = reading(&[PERIOD_BYTES / 4; 4], 0);
        let loaded = after(&mut control, 8, &even, 200_000);
        assert!(loaded.mark_probability > 0.001 && loaded.mark > 0, "{loaded:?}");
        let idle = after(&mut control, 400, &LinkReading::default(), 0);
        assert_eq!((idle.mark, idle.price, idle.active_flows), (0, 0.0, 0.0));
        assert!(idle.cuts.is_empty());
    }

    #[test]
    fn at_ingress_the_queue_is_what_arrived_less_what_the_link_carries() {
        let mut control = control(LinkSide::Ingress);
        let twice = reading(&[PERIOD_BYTES; 2], 0);
        // The interface's own queue is not the link's.
        assert_eq!(after(&mut control, 1, &twice, 999_999).backlog_bytes, PERIOD_BYTES as f64);
        let full = after(&mut control, 20, &twice, 0);
        assert_eq!(full.backlog_bytes, 1_250_000.0, "a second of the link at most");
        assert!(full.mark_probability > 0.0);
        assert_eq!(after(&mut control, 4, &LinkReading::default(), 0).backlog_bytes, 0.0);
    }

    #[test]
    fn a_clock_that_stands_still_or_jumps_breaks_nothing() {
        let mut control = control(LinkSide::Ingress);
        let even = reading(&[PERIOD_BYTES / 4; 4], 0);
        for at in [0, 0, 250, 100, 86_400_000, 86_400_250] {
            let decision = control.take(Instant::from_millis(at), &even, u64::MAX);
            assert!(decision.price.is_finite() && decision.backlog_bytes.is_finite(), "{decision:?}");
            assert!(decision.share_bytes_per_s > 0.0, "{decision:?}");
        }
    }

    #[test]
    fn packets_smaller_than_usual_are_not_lost_to_rounding() {
        let mut control = control(LinkSide::Egress);
        let small = reading(&[1_000], 0);
        after(&mut control, 3, &small, 0);
        assert_eq!(control.remainder_bytes, 0);
    }
}
