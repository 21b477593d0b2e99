//! Pricing and purging of unresponsive flows (Abbas, Nagar, Tawfik and Goulermas).

mod counters;
mod link;
mod runs;

pub(crate) mod count_time;
pub(crate) mod counts;
pub(crate) mod memory;
pub(crate) mod single;
pub(crate) mod tables;
