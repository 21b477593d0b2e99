//! The reverse proxy: accepts, classifies, admits, forwards and explains.
//!
//! A request's life, one file for each phase, each knowing only those behind it:
//!
//! ```text
//! worker ── accept ── connection ── request ── classify ── pipeline ─┬─ forward ── finish ── acks ─▶ the pipeline's sample
//! (thread)  (bounds)  (TLS, wire)   (head)     (keys)                │                      (transfers)
//!                                                                    └─ refusal (retry_after, accept_field, decisions)
//! ```
//!
//! Between `classify` and `pipeline` a request may be answered from the `cache`, and `forward` may fill it.
//!
//! Each worker is a thread with its own runtime, listeners, pipeline and upstream connections (`context`);
//! nothing on a request's path is shared but atomics. The `control` thread runs the planners (`planner_task`,
//! `sentry`), the admin listener, signals, `reload` and the health checks (`watch`), and talks to the workers
//! through bounded channels (`commands`). With the feature `kernel` it may keep a part of a crowd away before
//! the TCP stack hears of it (`kernel`).

mod accept;
mod accept_field;
mod access_log;
mod acks;
mod admin;
mod agents;
mod bad_request;
mod body;
mod bounds;
mod cache;
mod client;
mod cluster;
mod commands;
mod connection;
mod context;
mod control;
mod current;
mod deadline;
mod decisions;
mod descriptors;
mod error;
mod exchange;
mod feedback;
mod finish;
mod flash_crowd_candidate;
mod forward;
mod impatient;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(not(feature = "kernel"))]
#[path = "kernel_absent.rs"]
mod kernel;
mod launch;
mod listening;
mod load_report;
mod no_store;
mod pipeline;
mod planner_task;
mod processors;
mod proxied;
mod recording;
mod redirect;
mod refusal;
mod refuse;
mod reload;
mod replication;
mod request;
mod responses;
mod sentry;
mod services;
mod settings;
mod shared;
mod slow_readers;
mod state_file;
mod status;
#[cfg(test)]
mod tests;
mod tracked;
mod transfers;
mod turned_away;
mod upload;
mod upstream_error;
mod upstream_watch;
mod verdict;
mod watch;
mod websocket;
mod worker;

pub use error::GatewayError;
pub use flashweir_kernel::inherited_listeners;
pub use flashweir_runtime::ClusterLink;
pub use launch::{Gateway, Launch, run};
#[doc(hidden)]
pub use load_report::take_load_report;
pub use recording::sentry_policies;
