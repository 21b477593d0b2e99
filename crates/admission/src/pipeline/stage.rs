//! Names of the stages, the resource that each guards, and the reasons for which each refuses.

use flashweir_core::Reason;

/// The stages, in the order in which a request is checked: cheap first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StageName {
    /// Bounds of the gateway itself; a gateway that stops, a connection that is one too many.
    Bounds,
    /// The ceiling of NEWS.
    FlashCrowd,
    /// Requests that the nodes in front of this one were asked not to send.
    Ladder,
    /// Requests that the upstream asked for fewer of.
    Gapping,
    /// Requests at the origin, by class.
    Sentry,
    /// Connections to the upstreams.
    Upstream,
}

/// Resource that a stage protects from overload. The stage judges only the part of a response's time that
/// this resource takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Memory, descriptors and processor of the gateway.
    Gateway,
    /// The path to the clients; the origin as well where no sentry owns it.
    Delivery,
    /// The servers of one service.
    Origin,
    /// Capacity of one service's upstream, a node that reports itself that it is short.
    Upstream,
    /// The connections to them.
    UpstreamConnections,
}

impl Resource {
    /// The one spelling used in `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Delivery => "delivery",
            Self::Origin => "origin",
            Self::Upstream => "upstream",
            Self::UpstreamConnections => "upstream_connections",
        }
    }
}

impl StageName {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Bounds, Self::FlashCrowd, Self::Ladder, Self::Gapping, Self::Sentry, Self::Upstream];
    /// Number of stages.
    pub const COUNT: usize = Self::ALL.len();

    /// Resource that it guards.
    #[must_use]
    pub const fn resource(self) -> Resource {
        match self {
            Self::Bounds => Resource::Gateway,
            Self::FlashCrowd => Resource::Delivery,
            Self::Ladder | Self::Sentry => Resource::Origin,
            Self::Gapping => Resource::Upstream,
            Self::Upstream => Resource::UpstreamConnections,
        }
    }

    /// The stage that refuses for this reason.
    #[must_use]
    pub const fn of(reason: Reason) -> Self {
        match reason {
            Reason::RequestsInFlight
            | Reason::Connections
            | Reason::ConnectionsPerClient
            | Reason::Draining
            | Reason::CallerDeadline => Self::Bounds,
            Reason::FlashCrowd => Self::FlashCrowd,
            Reason::Ladder | Reason::SenderShare => Self::Ladder,
            Reason::UpstreamFeedback => Self::Gapping,
            Reason::Capacity
            | Reason::Deadline
            | Reason::Reserved
            | Reason::Threshold
            | Reason::Batch
            | Reason::ClientShare
            | Reason::FairShare => Self::Sentry,
            Reason::UpstreamConnections => Self::Upstream,
        }
    }

    /// The one spelling used in `/status` and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::FlashCrowd => "flash_crowd",
            Self::Ladder => "ladder",
            Self::Gapping => "gapping",
            Self::Sentry => "sentry",
            Self::Upstream => "upstream",
        }
    }
}
