//! `[link]`: fair shares of a link, for `flashweir router`.

use core::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernel::interface_name;
use crate::checks::range::{duration_within, within};
use crate::checks::word::variant;
use crate::error::Problem;
use crate::overrides::Overrides;
use crate::text::{DurationText, RateText};

/// Only for `flashweir router`: fair shares of a link (docs/links.md). Flows that go on sending more than their share are
/// cut to it in the kernel, and all flows get congestion marks (or drops) at a price that keeps the queue short. Needs Linux 6.6
/// or newer, root (or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON) and a build with the feature `kernel`. Nothing stays behind when the
/// process ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkFile {
    /// The network interface of the link. Also `--link`. Default: none, and no link is divided. Needs a restart to change.
    /// Example: `interface = "eth1"`.
    pub interface: Option<String>,
    /// Capacity of the link, bits a second, whole Ethernet frames counted. Also `--link-rate`. Must be given with an
    /// interface: it cannot be measured without filling the link. Best what the interface's own queue is limited to (`tc`), or a
    /// little less than what the narrowest place behind it carries. Needs a restart to change.
    /// Valid rates: `"64kbit"` to `"400gbit"`. Too high: the queue is elsewhere, and nothing is cut. Too low: the link is never full.
    /// Example: `rate = "10mbit"`.
    pub rate: Option<RateText>,
    /// Which packets are divided: `"egress"`, those that leave by the interface, before its queue; or `"ingress"`, those that come in
    /// by it, for a link whose queue is at the far end. At ingress a queue is computed from what arrives, so `rate` must be below
    /// what the link carries. Also `--link-side`. Needs a restart to change.
    /// Example: `side = "ingress"`.
    pub side: LinkSide,
    /// Definition of one flow: `"five_tuple"` (addresses, protocol and ports), `"source"` (the source's address; of IPv6 its /64) or
    /// `"source_prefix"` (the source's /24, of IPv6 its /48). A sender with many connections gets a share for each with the
    /// first, and one share for all with the others; then all people behind one address share as well. Also `--link-flow`. Needs
    /// a restart to change.
    /// Example: `flow = "source"`.
    pub flow: LinkFlow,
    /// How long packets are to wait in the queue while the link is full. Needs a restart to change.
    /// Valid: `1ms` to `1s`. Raised: longer waits, and bursts find more room. Lowered: the link idles between bursts. Best a fifth of
    /// what the queue has room for.
    /// Example: `target = "20ms"`.
    pub target: DurationText,
}

impl Default for LinkFile {
    fn default() -> Self {
        Self {
            // A link is divided where it is asked for.
            interface: None,
            // There is no usual rate.
            rate: None,
            side: LinkSide::default(),
            flow: LinkFlow::default(),
            // A fifth of the quarter of a second that queues of shaped links often have room for.
            target: DurationText::from_millis(50),
        }
    }
}

/// Which packets of an interface are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkSide {
    // The queue is there, and can be read.
    /// Frames that leave.
    #[default]
    Egress,
    /// Frames that come in.
    Ingress,
}

impl LinkSide {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

/// Definition of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkFlow {
    // People behind one address are not one flow.
    /// Addresses, protocol and ports.
    #[default]
    FiveTuple,
    /// The source's address.
    Source,
    /// The source's network.
    SourcePrefix,
}

impl LinkFlow {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FiveTuple => "five_tuple",
            Self::Source => "source",
            Self::SourcePrefix => "source_prefix",
        }
    }
}

/// A link that is divided fairly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its interface.
    pub interface: String,
    /// Capacity of the link, bits a second.
    pub rate_bits_per_s: u64,
    /// Side of the interface whose packets are divided.
    pub side: LinkSide,
    /// Definition of one flow.
    pub flow: LinkFlow,
    /// Time that packets wait while it is full.
    pub target: Duration,
}

/// Slower than any modem still in use.
const RATE_MIN: RateText = RateText(64_000);
/// Faster than the fastest Ethernet interface.
const RATE_MAX: RateText = RateText(400_000_000_000);
/// Below it a timer of the kernel that is late empties the queue.
const TARGET_MIN: DurationText = DurationText::from_millis(1);
/// Above it TCP sends everything twice.
const TARGET_MAX: DurationText = DurationText::from_secs(1);

impl LinkFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) -> Result<(), Problem> {
        if let Some(interface) = &overrides.link {
            self.interface = Some(interface.clone());
        }
        if let Some(rate) = &overrides.link_rate {
            self.rate = Some(rate.parse().map_err(|what: String| Problem::new(RATE, what))?);
        }
        if let Some(side) = &overrides.link_side {
            self.side = variant("link.side", side)?;
        }
        if let Some(flow) = &overrides.link_flow {
            self.flow = variant("link.flow", flow)?;
        }
        Ok(())
    }
}

const RATE: &str = "link.rate";

impl Link {
    pub(super) fn check(file: &LinkFile) -> Result<Option<Self>, Problem> {
        let Some(interface) = &file.interface else {
            if file.rate.is_some() {
                let what = "a rate without an interface, expected the link's, here or as --link NAME";
                return Err(Problem::new("link.interface", what));
            }
            return Ok(None);
        };
        let Some(rate) = file.rate else {
            let what = "no rate, expected what the link carries like \"10mbit\", here or as --link-rate RATE";
            return Err(Problem::new(RATE, what));
        };
        Ok(Some(Self {
            interface: interface_name("link.interface", interface)?,
            rate_bits_per_s: within(RATE, rate, RATE_MIN, RATE_MAX)?.0,
            side: file.side,
            flow: file.flow,
            target: duration_within("link.target", file.target, TARGET_MIN, TARGET_MAX)?,
        }))
    }
}
