//! Settings of `flashweir control --kubernetes`, and its errors at the start.

use flashweir_core::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings of the controller.
#[derive(Clone, Debug)]
pub struct KubernetesSettings {
    /// The file that names the API server; none: `$KUBECONFIG`, then the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the policies that are followed; none: the client's own namespace.
    pub namespace: Option<String>,
    /// Follow the policies of all namespaces.
    pub all_namespaces: bool,
    /// Between plans.
    pub interval: Duration,
    /// For how long a leader that is silent keeps its place.
    pub lease: Duration,
    /// Address of `/metrics`, `/healthz` and `/readyz`.
    pub listen: Option<SocketAddr>,
    /// Address at which KEDA asks for numbers (gRPC).
    pub external_scaler: Option<SocketAddr>,
    /// This candidate's name in the election, unique among candidates.
    pub identity: String,
}

/// Between plans: 0.5 s to an hour, as `interval_s` of a file.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.5..=3_600.0;
/// Seconds of a Lease: at least twice as long as a call may take, and no longer than servers may wait for a
/// plan.
const LEASE_S: std::ops::RangeInclusive<u64> = 2..=120;

impl KubernetesSettings {
    /// Time between plans, from seconds.
    ///
    /// # Errors
    /// [`KubernetesError::Usage`] with what is accepted.
    pub fn interval(seconds: f64) -> Result<Duration, KubernetesError> {
        if INTERVAL_S.contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
        Err(KubernetesError::Usage(format!("--interval-s is {seconds}: expected 0.5 to 3600")))
    }

    /// The duration of the Lease, from seconds.
    ///
    /// # Errors
    /// [`KubernetesError::Usage`] with what is accepted.
    pub fn lease(seconds: u64) -> Result<Duration, KubernetesError> {
        if LEASE_S.contains(&seconds) {
            return Ok(Duration::from_secs(seconds));
        }
        Err(KubernetesError::Usage(format!("--lease-s is {seconds}: expected 2 to 120")))
    }
}

/// Error at the start. Later failures are logged, and tried again.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// An argument cannot be followed.
    #[error("{0}")]
    Usage(String),
    /// There is no client for the API server.
    #[error(
        "no access to a Kubernetes API server: {0}; expected a service account in a pod, $KUBECONFIG or --kubeconfig FILE"
    )]
    Client(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The port for other gateways' reports cannot be had.
    #[error("cannot listen on {0} for reports of other gateways: {1}")]
    Reports(SocketAddr, std::io::Error),
    /// The runtime, a thread or a signal handler cannot be started.
    #[error("{0}")]
    Io(std::io::Error),
}

impl KubernetesError {
    /// Returns whether another try with the same arguments fails again.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::Client(_) | Self::Reports(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_say_what_is_accepted() {
        assert_eq!(KubernetesSettings::interval(0.5).unwrap(), Duration::from_millis(500));
        let error = KubernetesSettings::interval(f64::NAN).unwrap_err().to_string();
        assert_eq!(error, "--interval-s is NaN: expected 0.5 to 3600");
        assert_eq!(
            KubernetesSettings::lease(1).unwrap_err().to_string(),
            "--lease-s is 1: expected 2 to 120"
        );
    }
}
