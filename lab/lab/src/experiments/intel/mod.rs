//! Overload control for web servers (Iyer, Tewari and Kant): the server without control (its section 5.1) and
//! with the three schemes that it proposes (5.2 to 5.5).

mod control;
mod runs;
mod server;

pub(crate) mod combined;
pub(crate) mod distributions;
pub(crate) mod dropping;
pub(crate) mod lost_feedback;
pub(crate) mod priorities;
pub(crate) mod response_times;
pub(crate) mod schemes;
pub(crate) mod self_similar_response_times;
pub(crate) mod self_similar_throughput;
pub(crate) mod table_one;
pub(crate) mod throttling;
pub(crate) mod throughput;
