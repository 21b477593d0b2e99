//! NEWS (Chen and Heidemann): the simulations of its section 7.

pub(crate) mod best_static;
pub(crate) mod bulk_bystander;
pub(crate) mod fastest_flows;
pub(crate) mod fastest_over_time;
pub(crate) mod impatience;
pub(crate) mod interval;
mod plant;
pub(crate) mod request_rates;
mod runs;
pub(crate) mod server_delay;
pub(crate) mod table_one;
