//! The file as it is written, and its checks.

use super::{
    BTreeMap, BudgetSettings, CLASSES, Config, Duration, EGRESS_LISTENERS, EGRESS_TARGETS, EndpointSettings,
    GAPPING_QUEUE, GappingSettings, HeaderName, Listener, PathBuf, Protocol, Ranks, SocketAddr, StatusCode,
    TargetConfig, UPSTREAM_ADDRESSES, Uri,
};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: String,
    admin: Option<SocketAddr>,
    udp: Option<SocketAddr>,
    listen: Vec<ListenFile>,
    #[serde(default)]
    ranks: RanksFile,
    target: Vec<TargetFile>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenFile {
    address: SocketAddr,
    target: Option<String>,
    #[serde(default = "rank_last")]
    rank: u8,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RanksFile {
    field: Option<String>,
    #[serde(default)]
    values: BTreeMap<String, u8>,
    #[serde(default)]
    priority: bool,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    name: String,
    node: Option<String>,
    urls: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    protocol: ProtocolFile,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    obey_quota: bool,
    #[serde(default = "queue")]
    queue: usize,
    #[serde(default = "wait_ms")]
    wait_ms: u64,
    #[serde(default = "deadline_ms")]
    deadline_ms: u64,
    #[serde(default = "connect_timeout_ms")]
    connect_timeout_ms: u64,
    #[serde(default = "connections")]
    connections: usize,
    hedge_after_ms: Option<u64>,
    #[serde(default)]
    retry: RetryFile,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetryFile {
    ratio: f64,
    reserve: u32,
    attempts: u32,
    statuses: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProtocolFile {
    #[default]
    Http1,
    Http2,
}

impl Default for RetryFile {
    fn default() -> Self {
        let BudgetSettings { ratio, reserve } = BudgetSettings::default();
        Self { ratio, reserve, attempts: 2, statuses: vec![503] }
    }
}

/// The least important rank: what does not say its worth goes after what does.
fn rank_last() -> u8 {
    CLASSES as u8 - 1
}
fn queue() -> usize {
    GappingSettings::default().queue_max
}
fn wait_ms() -> u64 {
    GappingSettings::default().wait_max.as_millis() as u64
}
/// Longer than people wait; what takes longer by nature brings its own deadline.
fn deadline_ms() -> u64 {
    10_000
}
/// A server of the same data centre accepts within milliseconds, or a lost packet later; a dead one is
/// noticed within 2 s.
fn connect_timeout_ms() -> u64 {
    1_000
}
fn connections() -> usize {
    256
}

/// Attempts beyond which a request is not better served.
const ATTEMPTS_MAX: u32 = 5;
/// A day.
const MILLIS_MAX: u64 = 86_400_000;
/// Retries in reserve beyond which they are a load of their own.
const RESERVE_MAX: u32 = 10_000;
/// Connections to one server, of one thread.
const CONNECTIONS_MAX: usize = 65_536;
/// Characters of a name, as of a gateway's.
const NAME_CHARACTERS: usize = 63;

impl File {
    pub(super) fn checked(self) -> Result<Config, String> {
        let name = name("name", self.name)?;
        within("target", self.target.len(), 1, EGRESS_TARGETS)?;
        within("listen", self.listen.len(), 1, EGRESS_LISTENERS)?;
        let mut targets: Vec<TargetConfig> = Vec::new();
        for target in self.target {
            let target = target.checked()?;
            if targets.iter().any(|other| other.name == target.name) {
                return Err(format!("target.{}: there are two of this name", target.name));
            }
            let taken = |host: &&String| targets.iter().any(|other| other.hosts.contains(host));
            if let Some(host) = target.hosts.iter().find(taken) {
                return Err(format!("target.{}.hosts: `{host}` is another target's, too", target.name));
            }
            targets.push(target);
        }
        let listeners =
            self.listen.into_iter().map(|listen| listen.checked(&targets)).collect::<Result<_, _>>()?;
        if self.udp.is_some() && targets.iter().all(|target| target.key_file.is_none()) {
            return Err(
                "udp: expected target.key_file, because datagrams without a tag are not believed".to_owned()
            );
        }
        Ok(Config {
            name,
            admin: self.admin,
            udp: self.udp,
            listeners,
            ranks: self.ranks.checked()?,
            targets,
        })
    }
}

impl ListenFile {
    fn checked(self, targets: &[TargetConfig]) -> Result<Listener, String> {
        let Self { address, target, rank } = self;
        let place = match target {
            Some(name) => {
                let place = targets.iter().position(|target| target.name == name);
                Some(place.ok_or_else(|| format!("listen {address}: there is no target `{name}`"))?)
            }
            None if targets.iter().all(|target| target.hosts.is_empty()) => {
                return Err(format!("listen {address}: expected `target`, because no target has `hosts`"));
            }
            None => None,
        };
        Ok(Listener { address, target: place, rank: checked_rank(&format!("listen {address}: rank"), rank)? })
    }
}

impl RanksFile {
    fn checked(self) -> Result<Ranks, String> {
        let Self { field, values, priority } = self;
        let parse = |field: String| {
            HeaderName::from_bytes(field.as_bytes())
                .map_err(|_| format!("ranks.field: `{field}` is no field's name"))
        };
        let field = field.map(parse).transpose()?;
        if field.is_none() && !values.is_empty() {
            return Err("ranks.values: expected ranks.field, too".to_owned());
        }
        for (value, &rank) in &values {
            checked_rank(&format!("ranks.values.{value}"), rank)?;
        }
        Ok(Ranks { field, values, priority })
    }
}

impl TargetFile {
    fn checked(self) -> Result<TargetConfig, String> {
        let name = name("target.name", self.name)?;
        let key = |key: &str| format!("target.{name}.{key}");
        within(&key("urls"), self.urls.len(), 1, UPSTREAM_ADDRESSES)?;
        let parse =
            |url: &String| url.parse::<Uri>().map_err(|error| format!("{}: `{url}`: {error}", key("urls")));
        let urls = self.urls.iter().map(parse).collect::<Result<_, _>>()?;
        let ratio = self.retry.ratio;
        if !(0.0..=1.0).contains(&ratio) {
            return Err(format!("{} is {ratio}: expected 0 to 1", key("retry.ratio")));
        }
        within(&key("retry.reserve"), self.retry.reserve, 0, RESERVE_MAX)?;
        within(&key("retry.attempts"), self.retry.attempts, 1, ATTEMPTS_MAX)?;
        let status = |status: &u16| {
            let status = StatusCode::from_u16(*status)
                .ok()
                .filter(|status| status.is_client_error() || status.is_server_error());
            status.ok_or_else(|| format!("{}: expected statuses from 400 to 599", key("retry.statuses")))
        };
        let millis = |name: &str, value: u64, min: u64| {
            within(&key(name), value, min, MILLIS_MAX).map(|()| Duration::from_millis(value))
        };
        within(&key("queue"), self.queue, 0, GAPPING_QUEUE)?;
        within(&key("connections"), self.connections, 1, CONNECTIONS_MAX)?;
        let gapping = GappingSettings {
            queue_max: self.queue,
            wait_max: millis("wait_ms", self.wait_ms, 0)?,
            ..GappingSettings::default()
        };
        let node = match self.node {
            Some(node) => self::name(&key("node"), node)?,
            None => name.clone(),
        };
        Ok(TargetConfig {
            node,
            urls,
            hosts: self.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            protocol: match self.protocol {
                ProtocolFile::Http1 => Protocol::Http1,
                ProtocolFile::Http2 => Protocol::Http2,
            },
            endpoint: EndpointSettings { gapping, obeys_quota: self.obey_quota },
            budget: BudgetSettings { ratio, reserve: self.retry.reserve },
            attempts_max: self.retry.attempts,
            retry_statuses: self.retry.statuses.iter().map(status).collect::<Result<_, _>>()?,
            deadline: millis("deadline_ms", self.deadline_ms, 1)?,
            hedge_after: self.hedge_after_ms.map(|after| millis("hedge_after_ms", after, 1)).transpose()?,
            connect_timeout: millis("connect_timeout_ms", self.connect_timeout_ms, 1)?,
            connections_max: self.connections,
            key_file: self.key_file,
            ca_file: self.ca_file,
            name,
        })
    }
}

/// Names are signed, are labels, and travel in `Flashweir-Sender`: what a gateway's name may be.
fn name(key: &str, name: String) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_CHARACTERS || !name.bytes().all(fits) {
        return Err(format!(
            "{key} is `{name}`: expected 1 to {NAME_CHARACTERS} letters, digits, `-`, `_` or `.`"
        ));
    }
    Ok(name)
}

fn checked_rank(key: &str, rank: u8) -> Result<u8, String> {
    within(key, usize::from(rank), 0, CLASSES - 1).map(|()| rank)
}

fn within<T: PartialOrd + std::fmt::Display>(key: &str, value: T, min: T, max: T) -> Result<(), String> {
    if value < min || value > max {
        return Err(format!("{key}: expected {min} to {max} (is {value})"));
    }
    Ok(())
}
