//! Reasons for a run that could not be made.

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
        /// The fault.
        why: String,
    },
    /// A setting out of range.
    #[error("{0}")]
    Plan(String),
    /// No server listens at any of the target's addresses: reported at once rather than after the run.
    #[error("{address} cannot be reached")]
    Unreachable {
        /// The first of them.
        address: SocketAddr,
        /// Error of the connection attempt to it.
        source: io::Error,
    },
    /// The machine gave no thread, event queue or timer.
    #[error("the load generator cannot start: {0}")]
    Start(io::Error),
    /// A sending thread panicked: a bug.
    #[error("a sending thread of the load generator failed; this is a bug")]
    Thread,
    /// The capacity could not be measured because too little was answered well.
    #[error("capacity of {url} cannot be measured: {completed} answers completed, {failed} did not")]
    Capacity {
        /// The target.
        url: String,
        /// Requests completed while measuring.
        completed: u64,
        /// Requests that were not.
        failed: u64,
    },
}

/// Reason for results that cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("no results to merge")]
    Nothing,
    /// Written by another version.
    #[error("{name}: format {format} of another version; this one reads format {known}")]
    Format {
        /// The result.
        name: String,
        /// Its format.
        format: u32,
        /// The format of this version.
        known: u32,
    },
    /// Not a part of the same run.
    #[error("{first} and {name} are of different runs: {what} is {one} in one and {other} in the other")]
    OtherRun {
        /// The property that differs.
        what: &'static str,
        /// The first result.
        first: String,
        /// Its value there.
        one: String,
        /// The result that differs.
        name: String,
        /// Its value there.
        other: String,
    },
    /// The same part of the schedule in two results.
    #[error("{one} and {other} are both of shard {shard}")]
    Twice {
        /// The shard.
        shard: String,
        /// One result.
        one: String,
        /// The other.
        other: String,
    },
    /// Parts that were not cut in the same way, so that some people are in both and some in neither.
    #[error(
        "{one} is of shard {shard} and {other} of shard {other_shard}: shards of one run have the same total"
    )]
    Division {
        /// One result.
        one: String,
        /// Its shard.
        shard: String,
        /// Another.
        other: String,
        /// Its shard.
        other_shard: String,
    },
    /// Books that no run can have written.
    #[error("{name}, class {class}: {why}")]
    Broken {
        /// The result.
        name: String,
        /// The class.
        class: String,
        /// The fault.
        why: String,
    },
}
