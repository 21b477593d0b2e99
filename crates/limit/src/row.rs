//! Counts of one class in one bin of time: as they are given for a tick, and as a base learns from them.

/// Counts of one class in one bin of time over a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Class of the requests.
    pub class: u32,
    /// Bin of time, see [`time_bin`](crate::time_bin).
    pub bin: u8,
    /// Requests that completed after this time.
    pub completed: u32,
    /// Requests that ended after this time without a response, for example because the client left.
    pub left: u32,
    /// Requests of this age in flight at the end of the tick.
    pub in_flight: u32,
}

/// Counts of one class in one bin of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    pub(crate) bin: usize,
    /// Requests in flight now, and those that ended, less those in flight before.
    pub(crate) net: i64,
    pub(crate) completed: i64,
    pub(crate) in_flight: i64,
}

impl Age {
    pub(crate) fn zero(bin: usize) -> Self {
        Self { bin, net: 0, completed: 0, in_flight: 0 }
    }
}
