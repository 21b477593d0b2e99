//! `flashweir control --kubernetes` and `flashweir run --upstream-service`: against a scripted API server,
//! where every fault can be had, and in a real control plane.

mod beside;
mod chart;
mod cluster;
mod control;
mod external_scaler;
mod gateway_faults;
mod gateway_numbers;
mod gateways;
mod gateways_false_leader;
mod manifests;
mod scripted_api;
mod sentries;
mod upstreams;
mod workload;

/// In the real cluster: addresses of the pods' network that no pod gets, and people come from.
const PEOPLE: &str = "10.244.128.0/17";

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
