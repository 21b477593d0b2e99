//! Implementation of `flashweir control` and `flashweir run` on Kubernetes; with the feature `kubernetes`.

use flashweir_config::{Config, ConfigError, Engine, KubernetesGateways, Log, Overrides};
use flashweir_gateway::ClusterLink;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// The controller of a cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ControllerArgs {
    /// Follow the custom resources OverloadPolicy of a Kubernetes cluster, described in docs/kubernetes.md.
    #[arg(long)]
    pub(crate) kubernetes: bool,
    /// The file that names the API server [default: $KUBECONFIG, then the pod's service account].
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    kubeconfig: Option<PathBuf>,
    /// The namespace whose policies are followed [default: the client's own].
    #[arg(long, value_name = "NAME", requires = "kubernetes", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Follow the policies of all namespaces.
    #[arg(long, requires = "kubernetes")]
    all_namespaces: bool,
    /// Seconds between plans, 0.5 to 3600.
    #[arg(long, value_name = "S", default_value_t = 10.0, requires = "kubernetes")]
    interval_s: f64,
    /// Seconds after which another copy of the controller takes over from one that is silent, 2 to 120.
    #[arg(long, value_name = "S", default_value_t = 2, requires = "kubernetes")]
    lease_s: u64,
    /// Where health and metrics are served.
    #[arg(long, value_name = "ADDR", requires = "kubernetes")]
    listen: Option<SocketAddr>,
    /// Where KEDA asks how many replicas are wanted (gRPC, an external scaler).
    #[arg(long, value_name = "ADDR", requires = "kubernetes")]
    external_scaler: Option<SocketAddr>,
    /// This copy's name in the election, unique among them [default: the host's name and a random number].
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    identity: Option<String>,
}

/// Where a gateway's upstreams come from.
#[derive(Debug, clap::Args)]
pub(crate) struct UpstreamArgs {
    /// A Service of Kubernetes whose ready pods are the upstreams, as shop/web:http; --upstream is used until
    /// the API server has answered, without it the gateway waits.
    #[arg(long, value_name = "[NAMESPACE/]NAME[:PORT]", hide_short_help = true)]
    upstream_service: Option<String>,
    /// The file that names the API server, for --upstream-service and --cluster-service [default:
    /// $KUBECONFIG, then the pod's service account].
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kubeconfig: Option<PathBuf>,
}

/// Several gateways of a Service that share its limit.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Share limits with the other gateways of this Service of Kubernetes, as flashweir-gateways:reports;
    /// docs/several-gateways.md.
    #[arg(long, value_name = "[NAMESPACE/]NAME[:PORT]", hide_short_help = true)]
    cluster_service: Option<String>,
    /// This gateway's own address and port for reports of the others: \"$(POD_IP):9920\" in a pod's command.
    #[arg(long, value_name = "ADDR", hide_short_help = true)]
    cluster_listen: Option<String>,
    /// The file with the keys that all gateways have, one a line: a number, a blank and the key.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    cluster_keys: Option<PathBuf>,
}

impl ClusterArgs {
    /// Puts the flags where the configuration finds them.
    pub(crate) fn apply(self, overrides: &mut Overrides) {
        overrides.cluster_service = self.cluster_service;
        overrides.cluster_listen = self.cluster_listen;
        overrides.cluster_keys = self.cluster_keys;
    }
}

/// Takes part in the cluster of gateways, where the configuration names one in Kubernetes.
pub(crate) fn join(config: &Config, kubeconfig: Option<PathBuf>) -> anyhow::Result<Option<ClusterLink>> {
    match &config.cluster.engine {
        Some(Engine::Kubernetes(gateways)) => join_gateways(gateways, kubeconfig),
        _ => Ok(None),
    }
}

#[cfg(feature = "kubernetes")]
fn join_gateways(
    gateways: &KubernetesGateways,
    kubeconfig: Option<PathBuf>,
) -> anyhow::Result<Option<ClusterLink>> {
    use flashweir_control::kubernetes::gateways::{GatewaysSettings, join_gateways};
    let KubernetesGateways { listen, namespace, service, port, lease } = gateways.clone();
    Ok(Some(join_gateways(GatewaysSettings { listen, namespace, service, port, lease, kubeconfig })?))
}

/// The gateway says what is missing.
#[cfg(not(feature = "kubernetes"))]
fn join_gateways(_: &KubernetesGateways, _: Option<PathBuf>) -> anyhow::Result<Option<ClusterLink>> {
    Ok(None)
}

#[cfg(feature = "kubernetes")]
impl ControllerArgs {
    /// Follows policies until a signal.
    pub(crate) fn run(self, log: &Log) -> anyhow::Result<()> {
        use flashweir_control::kubernetes::KubernetesSettings;
        let settings = KubernetesSettings {
            interval: KubernetesSettings::interval(self.interval_s)?,
            lease: KubernetesSettings::lease(self.lease_s)?,
            kubeconfig: self.kubeconfig,
            namespace: self.namespace,
            all_namespaces: self.all_namespaces,
            listen: self.listen,
            external_scaler: self.external_scaler,
            identity: self.identity.unwrap_or_else(unique_name),
        };
        crate::logging::start(log);
        Ok(flashweir_control::kubernetes::run(settings)?)
    }
}

/// Pods have their own name as host name; the number distinguishes a restarted one from the one before.
#[cfg(feature = "kubernetes")]
fn unique_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{:016x}", host.trim(), RandomState::new().hash_one(0_u64))
}

#[cfg(not(feature = "kubernetes"))]
impl ControllerArgs {
    /// Says that this build cannot.
    pub(crate) fn run(self, _log: &Log) -> anyhow::Result<()> {
        anyhow::bail!(WITHOUT)
    }
}

#[cfg(not(feature = "kubernetes"))]
const WITHOUT: &str = "this build is without Kubernetes; build it with the feature `kubernetes` (`cargo build --features kubernetes`)";

impl UpstreamArgs {
    /// The file that names the API server, where there is use for one.
    pub(crate) fn kubeconfig(self, config: &Config) -> anyhow::Result<Option<PathBuf>> {
        let is_used =
            self.upstream_service.is_some() || matches!(config.cluster.engine, Some(Engine::Kubernetes(_)));
        if self.kubeconfig.is_some() && !is_used {
            let problem = "has no use without --upstream-service or cluster.kubernetes".to_owned();
            return Err(ConfigError::InFlag { flag: "--kubeconfig", problem }.into());
        }
        Ok(self.kubeconfig)
    }

    /// Follows the Service, if one is named. Puts its pods into `overrides` where no other upstreams are
    /// given: then it waits for the first of them, once the rest of the configuration has been found right.
    pub(crate) fn follow(
        &self,
        config_file: Option<&Path>,
        overrides: &mut Overrides,
    ) -> anyhow::Result<Option<watch::Receiver<Vec<String>>>> {
        let Some(service) = &self.upstream_service else { return Ok(None) };
        let must_wait = overrides.upstream_urls.is_empty();
        let some_url = ["http://127.0.0.1:1".to_owned()];
        let urls = if must_wait { some_url.to_vec() } else { overrides.upstream_urls.clone() };
        let with_any = Overrides { upstream_urls: urls, ..overrides.clone() };
        let config = Config::load(config_file, &with_any)?;
        crate::logging::start(&config.log);
        let mut servers = watch_service(service, self.kubeconfig.clone())?;
        if must_wait {
            tracing::info!(service, "waits for the first pod that is ready");
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let first = runtime.block_on(servers.wait_for(|urls| !urls.is_empty()));
            overrides.upstream_urls.clone_from(&*first?);
        }
        Ok(Some(servers))
    }
}

#[cfg(feature = "kubernetes")]
fn watch_service(service: &str, kubeconfig: Option<PathBuf>) -> anyhow::Result<watch::Receiver<Vec<String>>> {
    use flashweir_control::kubernetes::{ServiceReference, watch_service};
    Ok(watch_service(ServiceReference::parse(service)?, kubeconfig)?)
}

#[cfg(not(feature = "kubernetes"))]
fn watch_service(_: &str, _: Option<PathBuf>) -> anyhow::Result<watch::Receiver<Vec<String>>> {
    anyhow::bail!(WITHOUT)
}
