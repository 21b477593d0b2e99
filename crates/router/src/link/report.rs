//! Reports on a link: to scrapers without any flow, to operators with the hashes of those that are cut. An
//! address is in neither; the hash's key is drawn at start, so nothing can be looked up by it.

use super::control::LinkDecision;
use flashweir_config::Link;
use flashweir_core::kernel_counts::LinkCounts;
use flashweir_telemetry::LinkFigures;
use serde_json::{Value, json};

/// A link as it stood at the last reading.
#[derive(Clone, Debug)]
pub(crate) struct LinkReport {
    pub(super) link: Link,
    pub(super) shadow: bool,
    pub(super) is_attached: bool,
    /// Since the start.
    pub(super) counts: LinkCounts,
    pub(super) overflowed_packets: u64,
    pub(super) decision: LinkDecision,
}

impl LinkReport {
    /// For scrapers.
    pub(super) fn figures(&self) -> LinkFigures {
        let decision = &self.decision;
        LinkFigures {
            is_attached: self.is_attached,
            counts: self.counts,
            active_flows: decision.active_flows,
            cut_flows: decision.cuts.len() as u64,
            share_bits_per_s: decision.share_bytes_per_s * 8.0,
            price: decision.price,
            mark_probability: decision.mark_probability,
            backlog_bytes: decision.backlog_bytes,
            overflowed_packets: self.overflowed_packets,
        }
    }

    /// The object `link` of `/status`.
    pub(crate) fn json(&self) -> Value {
        let (link, counts, decision) = (&self.link, &self.counts, &self.decision);
        let most_cut = decision.most_cut.iter().map(|flow| {
            let rate = decision.share_bytes_per_s * 8.0 / (1.0 - flow.drop_probability).max(f64::EPSILON);
            json!({
                "flow": format!("{:016x}", flow.flow),
                "rate_bits_per_s": rate.round(),
                "drop_probability": flow.drop_probability,
            })
        });
        json!({
            "interface": link.interface,
            "attached": self.is_attached,
            "side": link.side.as_str(),
            "flow": link.flow.as_str(),
            "rate_bits_per_s": link.rate_bits_per_s,
            "target_s": link.target.as_secs_f64(),
            "shadow": self.shadow,
            "active_flows": decision.active_flows,
            "share_bits_per_s": decision.share_bytes_per_s * 8.0,
            "price": decision.price,
            "mark_probability": decision.mark_probability,
            "backlog_bytes": decision.backlog_bytes,
            "cut_flows": decision.cuts.len(),
            "most_cut": most_cut.collect::<Vec<_>>(),
            "packets": {
                "offered": counts.offered_packets,
                "purged": counts.purged_packets,
                "refused": counts.refused_packets,
                "marked": counts.marked_packets,
                "overflowed": self.overflowed_packets,
            },
            "bytes": {
                "offered": counts.offered_bytes,
                "purged": counts.purged_bytes,
                "refused": counts.refused_bytes,
                "sent": counts.sent_bytes(),
            },
            "unread_frames": counts.unread_frames,
        })
    }
}
