//! Why a run could not be made.

use std::io;
use std::net::SocketAddr;

/// A run that could not start or could not be finished. Failed requests are results, not errors.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Not a URL that can be loaded.
    #[error("URL \"{url}\": {why}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A setting out of range.
    #[error("{0}")]
    Plan(String),
    /// Nobody listens at the target: told at once rather than after the run.
    #[error("{address} cannot be reached")]
    Unreachable {
        /// The target's address.
        address: SocketAddr,
        /// What the connection attempt said.
        source: io::Error,
    },
    /// The machine gave no thread, event queue or timer.
    #[error("the load generator cannot start: {0}")]
    Start(io::Error),
    /// A sending thread panicked: a bug.
    #[error("a sending thread of the load generator failed; this is a bug")]
    Thread,
    /// The capacity could not be measured because too little was answered well.
    #[error("capacity of {address} cannot be measured: {completed} answers completed, {failed} did not")]
    Capacity {
        /// The target's address.
        address: SocketAddr,
        /// Requests completed while measuring.
        completed: u64,
        /// Requests that were not.
        failed: u64,
    },
}
