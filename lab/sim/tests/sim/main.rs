//! Tests of `flashweir-sim` through its public interface, one theme in each file or folder.

mod auto_policing;
mod blocked_requests;
mod busy_pages;
mod capacity;
mod composition;
mod default_composition;
mod fairness;
mod intel_server;
mod network;
mod news;
mod pool;
mod queueing_theory;
mod replicas;
mod request_packets;
mod request_runs;
mod request_swarm;
mod senders;
mod sentry_workers;
mod standing_queue;
