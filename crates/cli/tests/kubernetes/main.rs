//! `flashweir control --kubernetes` and `flashweir run --upstream-service`: against a scripted API server, where every fault can be had, and in a
//! real control plane.

mod cluster;
mod control;
mod external_scaler;
mod manifests;
mod scripted_api;
mod upstreams;

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
