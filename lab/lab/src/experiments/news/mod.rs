//! NEWS (Chen and Heidemann): the simulations of its section 7, and the experiments on its testbed of section
//! 8.

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
pub(crate) mod server_memory;
pub(crate) mod table_one;
mod testbed;
pub(crate) mod testbed_interval;
mod testbed_runs;
pub(crate) mod web_bystander;
