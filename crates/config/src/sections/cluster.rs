//! `[cluster]`: several gateways before the same services.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listen;
use super::feedback::keys_of_file;
use crate::checks::address::{collide, socket_address};
use crate::checks::name::name;
use crate::error::Problem;
use crate::overrides::Overrides;
use flashweir_feedback::SharedKeys;

/// Several gateways before the same services (docs/several-gateways.md): the limit on requests at a service's origin is learned once and divided
/// among them by demand. Without this section each gateway learns a limit as if it were alone. One of `listen`, `leader`, `nats` and
/// `kubernetes` says how the gateways hear of each other. All gateways need the same services with the same classes and targets, and names
/// (`gateway.name`, `[[service]]`) by which services are recognised. Changes need a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterFile {
    /// Name of this gateway among the others, in `/status` and the log. Default: `gateway.name`, which is the same in all of them, because it names
    /// the first service; with `kubernetes` the address in `listen`. Valid: 1 to 63 letters, digits, `-`, `_` or `.`.
    /// Example: `name = "gw-2"`.
    pub name: Option<String>,
    /// This gateway leads: the others report to this address and port. Keep it on a private network. While the leader is gone
    /// the others keep their shares for 15 s and then go to equal ones. With `kubernetes`, the pod's own address and a port for reports, taken by every
    /// gateway because any may lead: `--cluster-listen "$(POD_IP):9920"` in the pod's command.
    /// Example: `listen = "10.0.0.4:9920"`.
    pub listen: Option<String>,
    /// The gateway that leads, as `HOST:PORT`: this one reports there.
    /// Example: `leader = "10.0.0.4:9920"`.
    pub leader: Option<String>,
    /// A NATS server of version 2.10 or later with JetStream, through which the gateways find a leader and report: `nats://HOST:PORT`, several with commas
    /// between. Needs a build with the feature `nats`.
    /// Example: `nats = "nats://10.0.0.9:4222"`.
    pub nats: Option<String>,
    /// With NATS: what the subjects and the bucket of this cluster begin with. Gateways of the same subject share their limits.
    /// Default: `"flashweir"`. Valid: 1 to 63 letters, digits, `-` or `_`.
    /// Example: `subject = "shop"`.
    pub subject: Option<String>,
    /// In Kubernetes: the Service whose pods are the gateways that share the limit, as `[NAMESPACE/]NAME[:PORT]`; PORT is the name or number of its port
    /// for reports, without it the first. Best headless. The gateways agree by a Lease which one leads, and report to it over gRPC; the API server is
    /// written to for the Lease alone. Needs `listen`, a build with the feature `kubernetes`, and a service account that may watch EndpointSlices and hold
    /// the Lease (deploy/kubernetes/gateway.yaml).
    /// Example: `kubernetes = "flashweir-gateways:reports"`.
    pub kubernetes: Option<String>,
    /// With `kubernetes`: name of the Lease, in the Service's namespace. Default: the Service's name. Valid: 1 to 63 lower-case letters, digits or `-`.
    /// Example: `lease = "shop-gateways"`.
    pub lease: Option<String>,
    /// File with the keys that seal reports and shares, the same for all gateways of the cluster: each line a number from 1 to
    /// 15, a blank, and a key of 16 to 1024 visible characters or blanks. The first seals, all are accepted. Required.
    /// Example: `keys_file = "cluster.keys"`.
    pub keys_file: Option<PathBuf>,
}

/// Several gateways before the same services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Name of this gateway among the others.
    pub name: Option<String>,
    /// Exchange of messages between gateways; none where this one shares no limit.
    pub engine: Option<Engine>,
    /// The file with the keys.
    pub keys_file: Option<PathBuf>,
    /// The keys in the file, read by [`Config::load`](crate::Config::load).
    pub keys: SharedKeys,
}

/// Exchange of messages between the gateways of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// This gateway leads, and listens here.
    Leader(SocketAddr),
    /// The gateway there leads: HOST:PORT.
    Follower(String),
    /// By NATS, the holder of the lease leads.
    Nats(Nats),
    /// In Kubernetes, the holder of the Lease leads.
    Kubernetes(KubernetesGateways),
}

/// Gateways that are the pods of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesGateways {
    /// This gateway's own address among the Service's endpoints, and its port for reports.
    pub listen: SocketAddr,
    /// The Service's namespace; none: that of the pod.
    pub namespace: Option<String>,
    /// The Service's name.
    pub service: String,
    /// Name or number of the port for reports; empty: the first.
    pub port: String,
    /// The Lease's name.
    pub lease: String,
}

/// A cluster that is connected by NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nats {
    /// Addresses of servers, with commas between.
    pub servers: String,
    /// Prefix of subjects and of the bucket.
    pub subject: String,
}

const SUBJECT: &str = "flashweir";

impl ClusterFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        for (written, flag) in [
            (&mut self.kubernetes, &overrides.cluster_service),
            (&mut self.listen, &overrides.cluster_listen),
        ] {
            if flag.is_some() {
                written.clone_from(flag);
            }
        }
    }
}

impl Cluster {
    pub(super) fn check(
        file: ClusterFile,
        directory: &Path,
        overrides: &Overrides,
        listen: &Listen,
        admin: SocketAddr,
    ) -> Result<Self, Problem> {
        // Where the flag is relative to, the file is not.
        let written = file.keys_file.as_ref().map(|path| directory.join(path));
        let keys_file = overrides.cluster_keys.clone().or(written);
        let is_empty = file == ClusterFile::default() && keys_file.is_none();
        if file.nats.is_none() && file.subject.is_some() {
            return Err(Problem::new("cluster.subject", "has no use without cluster.nats"));
        }
        if file.kubernetes.is_none() && file.lease.is_some() {
            return Err(Problem::new("cluster.lease", "has no use without cluster.kubernetes"));
        }
        let own_name = file.name.map(|text| name("cluster.name", text)).transpose()?;
        let engine = match (file.listen, file.leader, file.nats, file.kubernetes) {
            (None, None, None, None) if is_empty => return Ok(Self::default()),
            (Some(address), None, None, None) => Engine::Leader(reports_address(&address, listen, admin)?),
            (None, Some(leader), None, None) => Engine::Follower(checked_leader(leader)?),
            (None, None, Some(servers), None) => Engine::Nats(Nats {
                servers: checked_servers(servers)?,
                subject: checked_subject(file.subject)?,
            }),
            (address, None, None, Some(service)) => {
                let own = own_address(address.as_deref(), listen, admin)?;
                Engine::Kubernetes(KubernetesGateways::check(&service, file.lease, own)?)
            }
            _ => {
                return Err(Problem::new(
                    "cluster",
                    "expected one of cluster.listen, cluster.leader, cluster.nats and cluster.kubernetes (this one with cluster.listen)",
                ));
            }
        };
        let Some(keys_file) = keys_file else {
            let what = "is missing, expected a file with lines of a number and a key: without one any sender could take the limit";
            return Err(Problem::new("cluster.keys_file", what));
        };
        Ok(Self {
            name: own_name,
            engine: Some(engine),
            keys_file: Some(keys_file),
            keys: SharedKeys::default(),
        })
    }

    /// Reads the file with the keys, if there is one.
    pub(crate) fn read(&mut self) -> Result<(), Problem> {
        if let Some(path) = &self.keys_file {
            self.keys = keys_of_file("cluster.keys_file", path)?;
        }
        Ok(())
    }
}

impl KubernetesGateways {
    fn check(service: &str, lease: Option<String>, listen: SocketAddr) -> Result<Self, Problem> {
        let (before, port) = service.split_once(':').unwrap_or((service, ""));
        let (namespace, name) = match before.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, before),
        };
        if !is_label(name) || !namespace.is_none_or(is_label) || port.contains([':', '/']) {
            let what = format!(
                "`{service}` is no Service, expected [NAMESPACE/]NAME[:PORT] like \"flashweir-gateways:reports\""
            );
            return Err(Problem::new("cluster.kubernetes", what));
        }
        let lease = lease.unwrap_or_else(|| name.to_owned());
        if !is_label(&lease) {
            let what = format!("`{lease}` does not fit, expected 1 to 63 lower-case letters, digits or `-`");
            return Err(Problem::new("cluster.lease", what));
        }
        Ok(Self {
            listen,
            namespace: namespace.map(str::to_owned),
            service: name.to_owned(),
            port: port.to_owned(),
            lease,
        })
    }
}

/// A name as DNS labels and Kubernetes have it.
fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(fits)
}

/// Address at which the other pods reach this gateway while it leads.
fn own_address(text: Option<&str>, listen: &Listen, admin: SocketAddr) -> Result<SocketAddr, Problem> {
    let what = "expected the pod's own address and a port with cluster.kubernetes, as by --cluster-listen \"$(POD_IP):9920\"";
    let Some(text) = text else {
        return Err(Problem::new("cluster.listen", format!("is missing, {what}")));
    };
    let address = reports_address(text, listen, admin)?;
    if address.ip().is_unspecified() || address.port() == 0 {
        return Err(Problem::new(
            "cluster.listen",
            format!("`{text}` tells no other pod where to report, {what}"),
        ));
    }
    Ok(address)
}

fn reports_address(text: &str, listen: &Listen, admin: SocketAddr) -> Result<SocketAddr, Problem> {
    let key = "cluster.listen";
    let address = socket_address(key, text)?;
    if collide(address, admin) || listen.addresses.iter().any(|&other| collide(address, other)) {
        return Err(Problem::new(key, format!("`{text}` is taken by another listener of this gateway")));
    }
    Ok(address)
}

fn checked_leader(text: String) -> Result<String, Problem> {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_right = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && is_port(port));
    if !is_right || text.contains(char::is_whitespace) || text.contains('/') {
        let what = format!("`{text}` is no leader, expected HOST:PORT like \"10.0.0.4:9920\"");
        return Err(Problem::new("cluster.leader", what));
    }
    Ok(text)
}

fn checked_servers(text: String) -> Result<String, Problem> {
    let is_server = |text: &str| {
        ["nats://", "tls://"]
            .iter()
            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
    };
    if !text.split(',').all(is_server) {
        let what = format!(
            "`{text}` is no server, expected nats://HOST:PORT or tls://HOST:PORT, several with commas between"
        );
        return Err(Problem::new("cluster.nats", what));
    }
    Ok(text)
}

/// A part of a subject: a dot would divide it.
fn checked_subject(text: Option<String>) -> Result<String, Problem> {
    let subject = name("cluster.subject", text.unwrap_or_else(|| SUBJECT.to_owned()))?;
    if subject.contains('.') {
        return Err(Problem::new(
            "cluster.subject",
            format!("`{subject}` has a dot, expected letters, digits, `-` or `_`"),
        ));
    }
    Ok(subject)
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn error(cluster: &str) -> String {
        let text = format!("upstream.urls = ['http://10.0.0.5']\n[cluster]\n{cluster}");
        Config::from_toml(&text, "a.toml").expect_err("a wrong section").to_string()
    }

    #[test]
    fn a_wrong_section_says_what_is_expected() {
        for (cluster, expected) in [
            ("leader = '10.0.0.4:9920'", "keys_file: is missing"),
            ("keys_file = 'k'", "expected one of cluster.listen"),
            ("listen = '10.0.0.4:9920'\nleader = '10.0.0.4:9920'\nkeys_file = 'k'", "expected one of"),
            ("leader = 'gateway'\nkeys_file = 'k'", "`gateway` is no leader, expected HOST:PORT"),
            ("listen = ':9920'\nkeys_file = 'k'", "is not an address"),
            ("listen = '127.0.0.1:9900'\nkeys_file = 'k'", "is taken by another listener"),
            ("nats = '10.0.0.9:4222'\nkeys_file = 'k'", "expected nats://HOST:PORT"),
            ("nats = 'nats://a'\nsubject = 'a.b'\nkeys_file = 'k'", "has a dot"),
            ("leader = 'a:1'\nsubject = 'x'\nkeys_file = 'k'", "subject: has no use without cluster.nats"),
            ("leader = 'a:1'\nlease = 'x'\nkeys_file = 'k'", "lease: has no use without cluster.kubernetes"),
            (
                "kubernetes = 'gw'\nkeys_file = 'k'",
                "cluster.listen: is missing, expected the pod's own address",
            ),
            (
                "kubernetes = 'gw'\nlisten = '0.0.0.0:9920'\nkeys_file = 'k'",
                "tells no other pod where to report",
            ),
            ("kubernetes = 'a/b/c'\nlisten = '10.0.0.4:9920'\nkeys_file = 'k'", "`a/b/c` is no Service"),
            ("kubernetes = 'Gw'\nlisten = '10.0.0.4:9920'\nkeys_file = 'k'", "`Gw` is no Service"),
            ("kubernetes = 'gw'\nlease = 'A'\nlisten = '10.0.0.4:9920'\nkeys_file = 'k'", "`A` does not fit"),
            ("kubernetes = 'gw'\nlisten = '10.0.0.4:9920'", "keys_file: is missing"),
            (
                "kubernetes = 'gw'\nnats = 'nats://a'\nlisten = '10.0.0.4:9920'\nkeys_file = 'k'",
                "expected one of",
            ),
            ("kubernetes = 'gw'\nleader = 'a:1'\nkeys_file = 'k'", "expected one of"),
            ("kubernetes = 'gw'\nlisten = '127.0.0.1:9900'\nkeys_file = 'k'", "is taken by another listener"),
        ] {
            let error = error(cluster);
            assert!(error.contains(expected), "{cluster}: {error}");
        }
    }

    #[test]
    fn the_gateways_of_a_service_are_named_with_defaults() {
        let text = "upstream.urls = ['http://10.0.0.5']\ncluster.keys_file = 'k'\ncluster.listen = '10.0.0.4:9920'\n";
        let engine = |service: &str| {
            let text = format!("{text}cluster.kubernetes = '{service}'");
            Config::from_toml(&text, "a.toml").expect("a right section").cluster.engine
        };
        let expected = super::KubernetesGateways {
            listen: "10.0.0.4:9920".parse().expect("an address"),
            namespace: Some("shop".to_owned()),
            service: "gw".to_owned(),
            port: "reports".to_owned(),
            lease: "gw".to_owned(),
        };
        assert_eq!(engine("shop/gw:reports"), Some(super::Engine::Kubernetes(expected.clone())));
        let expected = super::KubernetesGateways { namespace: None, port: String::new(), ..expected };
        assert_eq!(engine("gw"), Some(super::Engine::Kubernetes(expected)));
    }
}
