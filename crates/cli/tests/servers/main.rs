//! `flashweir` with real clients, servers and other programs on loopback.

mod agent;
mod cache;
mod cluster;
mod control;
mod desync;
mod docs;
mod egress;
mod end_to_end;
mod exhaustion;
mod faults;
mod grpc_interop;
mod h2spec;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod news;
mod replication;
mod soak;
mod turn;
