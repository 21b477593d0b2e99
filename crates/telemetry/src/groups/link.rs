//! State of the link that a router divides, as the router last read it: no flow has a name or a label here.

use std::sync::{Mutex, PoisonError};

use super::ControlMetrics;
use crate::group::{MetricGroup, Row, Scrape};
use flashweir_core::kernel_counts::LinkCounts;

/// Metrics of a link that is divided among its flows, replaced whole each period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFigures {
    /// True if the classifier stands at the interface: not while that is gone.
    pub is_attached: bool,
    /// Packets and bytes since the start.
    pub counts: LinkCounts,
    /// Number of active flows (N).
    pub active_flows: f64,
    /// Flows that are cut.
    pub cut_flows: u64,
    /// The fair share of one flow, bits a second (f).
    pub share_bits_per_s: f64,
    /// The price of the link.
    pub price: f64,
    /// Probability of a mark.
    pub mark_probability: f64,
    /// Bytes in the link's queue: the interface's own, or the computed one at ingress.
    pub backlog_bytes: f64,
    /// Packets that the interface's own queue dropped for want of room.
    pub overflowed_packets: u64,
}

/// The figures published last; `None` where no link is divided.
#[derive(Debug, Default)]
pub(crate) struct LinkMetrics(Mutex<Option<LinkFigures>>);

impl ControlMetrics {
    /// Publishes the figures of the link that is divided.
    pub fn publish_link(&self, figures: LinkFigures) {
        *self.link.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
    }
}

impl MetricGroup for LinkMetrics {
    fn title(&self) -> &'static str {
        "Link"
    }

    fn export(&self, scrape: &mut Scrape) {
        let figures = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for &(name, help, count) in COUNTERS {
            scrape.counter(name, help, figures.as_ref().map(count));
        }
        scrape.gauges(GAUGES, figures.as_ref());
    }
}

const COUNTERS: &[Row<LinkFigures, u64>] = &[
    ("link_packets_offered", "Packets that arrived at the link.", |link| link.counts.offered_packets),
    ("link_packets_purged", "Packets dropped because their flow is over its fair share.", |link| {
        link.counts.purged_packets
    }),
    (
        "link_packets_refused",
        "Packets dropped at the link's price, because their sender does not understand marks.",
        |link| link.counts.refused_packets,
    ),
    ("link_packets_marked", "Packets marked (ECN) at the link's price.", |link| link.counts.marked_packets),
    ("link_packets_overflowed", "Packets that the interface's own queue dropped for want of room.", |link| {
        link.overflowed_packets
    }),
    ("link_offered_bytes", "Bytes that arrived at the link.", |link| link.counts.offered_bytes),
    ("link_purged_bytes", "Bytes dropped because their flow is over its fair share.", |link| {
        link.counts.purged_bytes
    }),
    ("link_refused_bytes", "Bytes dropped at the link's price.", |link| link.counts.refused_bytes),
    ("link_frames_unread", "Frames that are not IP or cannot be read; they pass.", |link| {
        link.counts.unread_frames
    }),
];

const GAUGES: &[Row<LinkFigures, Option<f64>>] = &[
    (
        "link_attached",
        "1 while the classifier stands at the link's interface, 0 while the interface is gone.",
        |link| Some(f64::from(u8::from(link.is_attached))),
    ),
    ("link_active_flows", "Flows that sent anything within the last seconds.", |link| {
        Some(link.active_flows)
    }),
    ("link_cut_flows", "Flows that are over their fair share and cut to it.", |link| {
        Some(link.cut_flows as f64)
    }),
    ("link_share_bits_per_second", "Fair share of one flow.", |link| Some(link.share_bits_per_s)),
    ("link_price", "Price of the link: 693 marks every second packet.", |link| Some(link.price)),
    ("link_mark_probability", "Part of packets that are marked or refused.", |link| {
        Some(link.mark_probability)
    }),
    ("link_backlog_bytes", "Bytes in the link's queue; at ingress a computed queue.", |link| {
        Some(link.backlog_bytes)
    }),
];
