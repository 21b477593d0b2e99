//! Requests as the gate sees them, and their ends.

/// Request as the sentry sees it: its class, kind, client and position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentryRequest {
    /// Its class: a place in the policy's list. Beyond its end is the last one.
    pub class: u8,
    /// A hash of method and path without the query.
    pub url_class: u32,
    /// Client, as far as fairness goes: a hash of API key, cookie or network.
    pub client_key: u64,
    /// Its position among those of its class.
    pub position: Position,
    /// It is no demand, and its refusal no evidence: it was counted before, or no client sent it.
    pub is_uncounted: bool,
}

/// Position of a request among those of its class while the service is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Position {
    /// Before the others.
    #[default]
    Usual,
    /// After those: it is for a host to which a crowd came.
    HotSpot,
    /// After all, and only for what the origin would otherwise not do: its client is over its share.
    OverShare,
}

impl Position {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Usual, Self::HotSpot, Self::OverShare];
}

/// End of an admitted request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The origin answered to the end. If not, it failed,
    pub completed: bool,
    /// or was taken back before: its client has gone, or something else answered. That says nothing of the
    /// origin, unless the origin had longer for it than the target.
    pub withdrawn: bool,
    /// Service time as the origin reports it, microseconds.
    pub measured_us: Option<u32>,
}

impl Ending {
    /// One that was taken back.
    pub const WITHDRAWN: Self = Self { completed: false, withdrawn: true, measured_us: None };
}
