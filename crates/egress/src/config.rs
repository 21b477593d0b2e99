//! The configuration file of `flashweir egress`.

use crate::error::EgressError;
use flashweir_core::Duration;
use flashweir_core::limits::{
    CLASSES, EGRESS_LISTENERS, EGRESS_TARGETS, GAPPING_QUEUE, SCENARIO_FILE_BYTES, UPSTREAM_ADDRESSES,
};
use flashweir_http::guarded::Protocol;
use flashweir_http::upstream::{EjectionSettings, PoolSettings, UpstreamSettings, UpstreamShared};
use flashweir_tower::client::{BudgetSettings, EndpointSettings, GappingSettings, Keys};
use http::{HeaderName, StatusCode, Uri};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

mod file;

/// Addresses that are listened on, and targets that requests are sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name of this caller; the nodes know it.
    pub name: String,
    /// Address of `/status` and `/metrics`.
    pub admin: Option<SocketAddr>,
    /// Address for nodes' datagrams.
    pub udp: Option<SocketAddr>,
    /// Listeners for the process.
    pub listeners: Vec<Listener>,
    /// Rules by which requests get their rank.
    pub ranks: Ranks,
    /// The targets that it calls.
    pub targets: Vec<TargetConfig>,
}

/// One address that the process connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address.
    pub address: SocketAddr,
    /// The target of all its requests, by its place; without one, `Host` says which.
    pub target: Option<usize>,
    /// The rank of requests that do not say theirs.
    pub rank: u8,
}

/// Rules by which requests get their rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// The field that names a class.
    pub field: Option<HeaderName>,
    /// The rank of each of its values.
    pub values: BTreeMap<String, u8>,
    /// True if the urgency of `Priority` (RFC 9218) is the rank where that field says nothing.
    pub priority: bool,
}

/// One target: a name and the servers behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetConfig {
    /// Its name here, in metrics and refusals.
    pub name: String,
    /// Name of its servers in the messages that they sign.
    pub node: String,
    /// `http://host:port` or `https://host:port` each; each address of a host is a separate server.
    pub urls: Vec<Uri>,
    /// The hosts that lead here on listeners without a target, in lower case.
    pub hosts: Vec<String>,
    /// HTTP/1.1 or HTTP/2.
    pub protocol: Protocol,
    /// The file of keys.
    pub key_file: Option<PathBuf>,
    /// The file of certificates that sign those of the servers.
    pub ca_file: Option<PathBuf>,
    /// Spacing, queue, quota.
    pub endpoint: EndpointSettings,
    /// Budget of retries.
    pub budget: BudgetSettings,
    /// Attempts for one request, the first included.
    pub attempts_max: u32,
    /// Statuses that are tried again.
    pub retry_statuses: Vec<StatusCode>,
    /// Deadline of requests that state none.
    pub deadline: Duration,
    /// From the start of a request to that of a second one beside it.
    pub hedge_after: Option<Duration>,
    /// TCP and TLS handshakes together.
    pub connect_timeout: Duration,
    /// Connections to one server.
    pub connections_max: usize,
}

/// The longest silence in the middle of a response.
const RESPONSE_FIELDS_MAX: usize = 256;
const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// An unused connection is closed after this time, before most servers do it.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

impl Config {
    /// Reads and checks a file, the files of keys and certificates that it names included.
    ///
    /// # Errors
    /// [`EgressError`] with the file's name and the first thing that is wrong.
    pub fn load(path: &Path) -> Result<Self, EgressError> {
        let file = path.display().to_string();
        let read = |error| EgressError::Read { file: file.clone(), error };
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > SCENARIO_FILE_BYTES {
            let problem = format!("{size} bytes, expected at most {SCENARIO_FILE_BYTES}");
            return Err(EgressError::Config { file, problem });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let mut config =
            Self::parse(&text).map_err(|problem| EgressError::Config { file: file.clone(), problem })?;
        // Names of files are relative to the file that has them.
        let directory = path.parent().unwrap_or(Path::new(""));
        for target in &mut config.targets {
            let named = [&mut target.key_file, &mut target.ca_file];
            named.into_iter().flatten().for_each(|named| *named = directory.join(&*named));
            target.keys()?;
            let upstream = |error| EgressError::Upstream {
                file: file.clone(),
                target: target.name.clone(),
                error: Box::new(error),
            };
            UpstreamShared::new(target.upstream_settings(target.urls.clone())).map_err(upstream)?;
        }
        Ok(config)
    }

    /// Checks the text of a file.
    ///
    /// # Errors
    /// The first thing that is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: file::File =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        file.checked()
    }
}

impl TargetConfig {
    /// The keys of its file; none without one.
    ///
    /// # Errors
    /// As [`Keys::load`].
    pub fn keys(&self) -> Result<Keys, EgressError> {
        Ok(self.key_file.as_deref().map(Keys::load).transpose()?.unwrap_or_default())
    }

    /// Settings of exchanges with the servers at these addresses.
    #[must_use]
    pub fn upstream_settings(&self, addresses: Vec<Uri>) -> UpstreamSettings {
        UpstreamSettings {
            addresses,
            protocol: self.protocol,
            connections_max: self.connections_max,
            connect_timeout: self.connect_timeout,
            // Each request has a deadline, which ends it before.
            response_header_timeout: flashweir_tower::client::DEADLINE_MAX,
            response_fields_max: RESPONSE_FIELDS_MAX,
            body_idle_timeout: BODY_IDLE_TIMEOUT,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            ca_file: self.ca_file.clone(),
            // Whether a server answers is the node's business.
            pool: PoolSettings {
                ejection: EjectionSettings {
                    failures: u32::MAX,
                    failed_probes: u32::MAX,
                    part_max: 0.0,
                    ..EjectionSettings::default()
                },
                slow_start: Duration::ZERO,
                learning: None,
                probe_interval: None,
            },
        }
    }
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;
