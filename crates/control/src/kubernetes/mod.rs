//! Flashweir on Kubernetes: workloads are scaled by what gateways refuse, and gateways know which pods serve.
//!
//! Two programs use it. `flashweir control --kubernetes` ([`run`]) reads the custom resources
//! [`OverloadPolicy`](policy::OverloadPolicy), the gateways' demand and the workloads' pods every few
//! seconds, asks the [planner of capacity](flashweir_provisioning), and sets replicas by the subresource
//! `scale`; of several copies the holder of a Lease does. `flashweir run --upstream-service` follows the
//! EndpointSlices of a Service ([`watch_service`]), and several of its copies share a limit ([`gateways`]).
//! None of it is needed for a request to be served: without the API server, gateways and replicas stay as
//! they are.
//!
//! Values without I/O: [`lease`] (who leads), [`demand`] (what gateways say, as samples), [`servers`] (pods
//! and their start-up times), [`objects`] (what API objects say), [`policy`] (the custom resource),
//! [`decide`] (orders and conditions), [`back_off`].

pub mod back_off;
mod cluster;
mod controller;
pub mod decide;
pub mod demand;
pub mod desired;
pub mod external_scaler;
pub mod gateways;
mod leader;
pub mod lease;
pub mod objects;
pub mod policy;
mod pools;
mod run;
pub mod servers;
mod settings;
#[cfg(test)]
mod tests;
mod upstreams;
mod watched;

pub use run::run;
pub use settings::{KubernetesError, KubernetesSettings};
pub use upstreams::{ServiceReference, watch_service};
