//! A real Kubernetes control plane, and a node whose pods are real processes.
//!
//! etcd, the API server, the controller manager and the scheduler are the released ones, in one binary that
//! `make testplane` builds. What is not real is the kubelet: [`ProcessKubelet`] starts a pod's command as a
//! process on a separate address, and knows no images and no volumes but Secrets. Everything runs in one
//! network namespace, because an EndpointSlice refuses addresses of loopback.

mod api;
mod kubelet;
mod plane;
mod processor_limit;
mod resource_metrics;

pub use api::{ApiAnswer, KubernetesApi};
pub use kubelet::ProcessKubelet;
pub use plane::ControlPlane;
pub use resource_metrics::ResourceMetrics;
