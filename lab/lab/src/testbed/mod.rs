//! The papers' testbeds, built and run: network namespaces, real servers, a crowd, and what protects the
//! servers from it.
//!
//! ```text
//! crowd, second ──(distance)──┐
//!                             ├── far ◄──[bottleneck]── router ──┬── target
//! guests ─────────(distance)──┘                          gate    └── neighbour
//! ```
//!
//! The scene and its judgement are defined in `crate::experiments::testbed`; here is all that touches the
//! machine. Instruments have no part in the protection: kernels' counters of the clients' and the server's
//! namespaces, the bottleneck's queue, the packets that reach the clients, and what the load generator says.

mod control_group;
mod crowd;
#[cfg(feature = "kernel")]
mod gate;
mod instruments;
mod network;
mod protection;
mod protection_record;
#[cfg(feature = "kernel")]
mod router;
#[cfg(feature = "kernel")]
mod router_cost;
mod servers;
mod stage;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use stage::perform;
pub(crate) use watch::stop_on_signal;
