//! Overload control for web servers (Iyer, Tewari and Kant): the server without control, its section 5.1.

mod runs;
mod server;

pub(crate) mod response_times;
pub(crate) mod self_similar_response_times;
pub(crate) mod self_similar_throughput;
pub(crate) mod table_one;
pub(crate) mod throughput;
