//! Counts of packets over the bins of a statistic.

use crate::scenario::link::Link;
use crate::scenario::scope::{Scope, Within};
use flashweir_sim::request::{DatagramBin, LinkBin, PacketOutcome, RouterOutcome};
use flashweir_sim::router::{GateCounts, Tick};
use std::ops::Range;

/// Sums over bins; of what the scope is not about there is nothing.
#[derive(Debug, Default)]
pub(crate) struct PacketView<'a> {
    /// There and back.
    pub(crate) link: Option<[LinkFlow; 2]>,
    pub(crate) received_bytes: Option<u64>,
    pub(crate) datagrams: Option<DatagramBin>,
    pub(crate) router: Option<GateCounts>,
    pub(crate) ticks: &'a [Tick],
    /// Of those bins.
    pub(crate) seconds: f64,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkFlow {
    pub(crate) packets: LinkBin,
    pub(crate) rate_bits_per_s: u64,
}

impl<'a> PacketView<'a> {
    /// The view of the scope's bins within a run; `bin_s` is their length.
    pub(crate) fn new(
        outcome: &'a PacketOutcome,
        links: &[Link],
        scope: &Scope,
        (bins, bin_s): (&Range<usize>, f64),
    ) -> Self {
        let mut view = Self { seconds: bins.len() as f64 * bin_s, ..Self::default() };
        match scope {
            Scope::Run | Scope::Window(_) => {
                if let Some(router) = &outcome.router {
                    view.router = Some(syns(router, bins));
                    view.ticks = &router.ticks;
                }
            }
            Scope::Class(_) => {}
            Scope::Link(Within { name, .. }) => view.link = link(outcome, links, name, bins),
            Scope::Transfer(Within { name, .. }) => {
                let transfer = outcome.transfers.iter().find(|transfer| transfer.name == *name);
                view.received_bytes =
                    transfer.map(|transfer| within(&transfer.received_bytes, bins).iter().sum());
            }
            Scope::Datagrams(Within { name, .. }) => {
                let source = outcome.datagrams.iter().find(|source| source.name == *name);
                view.datagrams = source.map(|source| {
                    within(&source.bins, bins).iter().fold(DatagramBin::default(), |sum, bin| DatagramBin {
                        sent: sum.sent + bin.sent,
                        delivered: sum.delivered + bin.delivered,
                    })
                });
            }
        }
        view
    }
}

impl LinkFlow {
    fn over(bins: &[LinkBin], rate_bits_per_s: u64) -> Self {
        let packets = bins.iter().fold(LinkBin::default(), |sum, bin| LinkBin {
            offered: sum.offered + bin.offered,
            dropped: sum.dropped + bin.dropped,
            marked: sum.marked + bin.marked,
            delivered_bytes: sum.delivered_bytes + bin.delivered_bytes,
        });
        Self { packets, rate_bits_per_s }
    }
}

fn link(outcome: &PacketOutcome, links: &[Link], name: &str, bins: &Range<usize>) -> Option<[LinkFlow; 2]> {
    // Wires are in the order of the links.
    let (wire, link) = outcome.wires.iter().zip(links).find(|(_, link)| link.name == name)?;
    let [rate_there, rate_back] = link.rates_bits_per_s;
    Some([
        LinkFlow::over(within(&wire.there, bins), rate_there),
        LinkFlow::over(within(&wire.back, bins), rate_back),
    ])
}

fn syns(router: &RouterOutcome, bins: &Range<usize>) -> GateCounts {
    within(&router.bins, bins).iter().fold(GateCounts::default(), |sum, bin| GateCounts {
        offered: sum.offered + bin.offered,
        admitted: sum.admitted + bin.admitted,
        shed: sum.shed + bin.shed,
    })
}

/// The bins that there are.
fn within<'a, T>(series: &'a [T], bins: &Range<usize>) -> &'a [T] {
    let end = bins.end.min(series.len());
    &series[bins.start.min(end)..end]
}
