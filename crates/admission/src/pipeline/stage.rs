//! The stages and what each guards, as data.

use flashweir_core::Reason;

/// The stages, in the order in which a request is checked: cheap first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StageName {
    /// Bounds of the gateway itself; a gateway that stops, a connection that is one too many.
    Bounds,
    /// The ceiling of NEWS.
    FlashCrowd,
    /// Requests at the origin, by class.
    Sentry,
    /// Connections to the upstreams.
    Upstream,
}

/// What a stage keeps from being overused. It judges only the part of a response's time that this resource makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Memory, descriptors and processor of the gateway.
    Gateway,
    /// The whole way of a response: the origin where no sentry owns it, and the path to the clients.
    Delivery,
    /// The servers of one service.
    Origin,
    /// The connections to them.
    UpstreamConnections,
}

impl StageName {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Bounds, Self::FlashCrowd, Self::Sentry, Self::Upstream];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// What it guards.
    #[must_use]
    pub const fn resource(self) -> Resource {
        match self {
            Self::Bounds => Resource::Gateway,
            Self::FlashCrowd => Resource::Delivery,
            Self::Sentry => Resource::Origin,
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
            | Reason::Draining => Self::Bounds,
            Reason::FlashCrowd => Self::FlashCrowd,
            Reason::Capacity
            | Reason::Deadline
            | Reason::Reserved
            | Reason::Threshold
            | Reason::Batch
            | Reason::ClientShare => Self::Sentry,
            Reason::UpstreamConnections => Self::Upstream,
        }
    }

    /// The one spelling used in `/status` and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::FlashCrowd => "flash_crowd",
            Self::Sentry => "sentry",
            Self::Upstream => "upstream",
        }
    }
}
