//! Plants that several files use.

pub(crate) mod drained_rates;
pub(crate) mod drained_responses;
