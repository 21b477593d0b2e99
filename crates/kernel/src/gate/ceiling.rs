//! A ceiling on new connections.

use flashweir_core::Rate;

use super::abi;

/// The most new connections that are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// New connections per second.
    pub rate: Rate,
    /// Maximum burst; 1 to 1,000,000.
    pub burst: u32,
}

impl Ceiling {
    pub(super) fn in_kernel(self) -> abi::Ceiling {
        abi::Ceiling { rate_milli: self.rate.as_milli(), burst: self.burst, limited: 1 }
    }
}
