//! `[admin]`, `[state]`, `[gateway]` and `[log]`: the process itself.

use core::num::NonZeroUsize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flashweir_core::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listen;
use crate::checks::address::{collide, socket_address};
use crate::checks::name::name;
use crate::checks::range::count_within;
use crate::error::Problem;
use crate::overrides::Overrides;

/// The listener for health, metrics, status and explanations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdminFile {
    /// Address and port of the admin listener. Needs a restart to change. It asks for no password: a client that
    /// reaches it reads the status and the metrics, so keep it on loopback or a private network.
    /// Example: `address = "10.0.0.4:9900"`.
    pub address: String,
    /// Names with a dot by which it may be asked for, without port. Addresses and names without a dot always work;
    /// anything else is answered 421, so that no page on the web can read it through a visitor's browser. Needs a restart to
    /// change.
    /// Example: `hosts = ["gw1.corp.example"]`.
    pub hosts: Vec<String>,
}

impl Default for AdminFile {
    fn default() -> Self {
        // Loopback: what it shows is for the operator.
        Self { address: "127.0.0.1:9900".to_owned(), hosts: Vec::new() }
    }
}

/// State that is kept across restarts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StateFile {
    /// File in which the learned baseline (what is usual for this service) survives a restart, so that a
    /// crowd right after one is still noticed. Default: `baseline-PORT.json` (`baseline-router.json` for
    /// `flashweir router`) in `$STATE_DIRECTORY`, in `$XDG_STATE_HOME/flashweir` or in
    /// `~/.local/state/flashweir`, the first of them that is known. One file for each gateway.
    /// Example: `file = "/var/lib/flashweir/shop.json"`.
    pub file: Option<PathBuf>,
}

/// This gateway as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayFile {
    /// Name of this gateway, in `/status` and in the `RateLimit-Policy` field, and of the service for every host
    /// that no `[[service]]` names.
    /// Valid: 1 to 63 letters, digits, `-`, `_` or `.`.
    /// Example: `name = "shop"`.
    pub name: String,
    /// Worker threads; 0 means one for each core this process may use. Needs a restart to change.
    /// Valid: `0` to `256`. Raised beyond the cores: workers take time from each other. Lowered: cores stay
    /// unused.
    /// Example: `workers = 2`.
    pub workers: u32,
}

impl Default for GatewayFile {
    fn default() -> Self {
        // Workers share nothing, so one for each core is what measured best.
        Self { name: "default".to_owned(), workers: 0 }
    }
}

/// Messages on standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogFile {
    /// The least important messages shown: `"error"`, `"warn"`, `"info"`, `"debug"` or `"trace"`. The last
    /// two may show addresses and URLs of clients and cost time on every request.
    /// Example: `level = "warn"`.
    pub level: LogLevel,
    /// `"text"` for people or `"json"` (one object a line) for programs.
    /// Example: `format = "json"`.
    pub format: LogFormat,
    /// A line for each request.
    pub access: AccessLogFile,
}

impl Default for LogFile {
    fn default() -> Self {
        // Info logs every change of state and stays quiet in between.
        Self { level: LogLevel::Info, format: LogFormat::Text, access: AccessLogFile::default() }
    }
}

/// A line for each request, in a separate file. Needs a restart to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccessLogFile {
    /// The file, which lines are appended to; relative to that of the configuration. After a rename a new one
    /// is opened within a second, as programs that rotate logs expect. It may be a device: `/dev/stdout`. None
    /// is written by default.
    /// Example: `file = "/var/log/flashweir/access.log"`.
    pub file: Option<PathBuf>,
    /// `"combined"`, the lines of Apache and nginx, or `"json"`, one object a line with class, decision,
    /// upstream and times.
    /// Example: `format = "json"`.
    pub format: AccessLogFormat,
    /// Refused requests that get a line, in each second and for each worker; the others are counted. In a
    /// crowd lines about refusals would say the same ten thousand times a second.
    /// Valid: `0` to `1000000`. Raised: more disk and processor time in a crowd. Lowered: less is known of
    /// those refused.
    /// Example: `refused_per_s = 100`.
    pub refused_per_s: u32,
}

impl Default for AccessLogFile {
    fn default() -> Self {
        // Ten show who is refused; all of them would be written at the rate of the crowd.
        Self { file: None, format: AccessLogFormat::Combined, refused_per_s: 10 }
    }
}

/// Format of the lines of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessLogFormat {
    /// As Apache and nginx have it.
    #[default]
    Combined,
    /// One JSON object a line.
    Json,
}

/// The least important messages shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something failed that was asked for.
    Error,
    /// Something needs attention.
    Warn,
    /// The state changed.
    Info,
    /// Details that an engineer needs to follow decisions.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All levels, the most important first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The spelling of the configuration file and of `--log`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Collides with no listen address.
    pub address: SocketAddr,
    /// Names by which it may be asked for, in lower case, besides addresses and names without a dot.
    pub hosts: Vec<String>,
}

/// State that is kept across restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The baseline's file; `None` keeps nothing.
    pub file: Option<PathBuf>,
}

/// This gateway as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Fit for a header field and a metric label: 1 to 63 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// Worker threads, at most [`limits::WORKERS`]; `None` means one for each core.
    pub workers: Option<NonZeroUsize>,
}

/// Messages on standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least important messages shown.
    pub level: LogLevel,
    /// Format of the log lines.
    pub format: LogFormat,
    /// A line for each request; `None` writes none.
    pub access: Option<AccessLog>,
}

impl Default for Log {
    fn default() -> Self {
        let LogFile { level, format, .. } = LogFile::default();
        Self { level, format, access: None }
    }
}

/// A line for each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The file.
    pub file: PathBuf,
    /// Format of its lines.
    pub format: AccessLogFormat,
    /// Refused requests that get a line, per second and worker.
    pub refused_per_s: u32,
}

impl Admin {
    pub(super) fn check(file: &AdminFile, listen: &Listen) -> Result<Self, Problem> {
        let key = "admin.address";
        let address = socket_address(key, &file.address)?;
        for (taken, by) in [(&listen.addresses, "listen.address"), (&listen.redirects, "listen.redirect")] {
            if let Some(other) = taken.iter().find(|other| collide(**other, address)) {
                let what = format!("{address} collides with {by} {other}, expected another port");
                return Err(Problem::new(key, what));
            }
        }
        let hosts = file.hosts.iter().enumerate().map(|(index, host)| {
            let key = format!("admin.hosts[{index}]");
            name(&key, host.to_ascii_lowercase())
        });
        Ok(Self { address, hosts: hosts.collect::<Result<_, _>>()? })
    }
}

impl State {
    /// A file of the configuration is relative to it, one of a flag to the working directory; by default it has
    /// `called` in its name.
    pub(super) fn check(
        file: StateFile,
        directory: &Path,
        overrides: &Overrides,
        called: &str,
    ) -> Result<Self, Problem> {
        let written = overrides.state_file.clone().or_else(|| file.file.map(|path| directory.join(path)));
        if let Some(path) = &written
            && path.file_name().is_none()
        {
            let what =
                format!("`{}` does not name a file, expected one like \"baseline.json\"", path.display());
            return Err(Problem::new("state.file", what));
        }
        let by_default =
            || overrides.state_directory.as_ref().map(|path| path.join(format!("baseline-{called}.json")));
        Ok(Self { file: written.or_else(by_default) })
    }
}

impl Gateway {
    pub(super) fn check(file: GatewayFile) -> Result<Self, Problem> {
        let name = name("gateway.name", file.name)?;
        let workers = count_within("gateway.workers", file.workers, 0, limits::WORKERS as u32)?;
        Ok(Self { name, workers: NonZeroUsize::new(workers) })
    }
}

impl AdminFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        if let Some(address) = &overrides.admin_address {
            self.address.clone_from(address);
        }
    }
}

impl GatewayFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        if let Some(workers) = overrides.workers {
            self.workers = u32::try_from(workers).unwrap_or(u32::MAX);
        }
    }
}

impl LogFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) -> Result<(), Problem> {
        if let Some(level) = &overrides.log_level {
            self.level = log_level(level)?;
        }
        Ok(())
    }
}

impl Log {
    /// A file of the configuration is relative to it.
    pub(super) fn check(file: LogFile, directory: &Path) -> Result<Self, Problem> {
        let access = AccessLog::check(file.access, directory)?;
        Ok(Self { level: file.level, format: file.format, access })
    }
}

impl AccessLog {
    fn check(file: AccessLogFile, directory: &Path) -> Result<Option<Self>, Problem> {
        let AccessLogFile { file, format, refused_per_s } = file;
        count_within("log.access.refused_per_s", refused_per_s, 0, 1_000_000)?;
        let Some(file) = file else { return Ok(None) };
        if file.file_name().is_none() {
            let what = format!("`{}` does not name a file, expected one like \"access.log\"", file.display());
            return Err(Problem::new("log.access.file", what));
        }
        Ok(Some(Self { file: directory.join(file), format, refused_per_s }))
    }
}

/// The level a flag names.
fn log_level(text: &str) -> Result<LogLevel, Problem> {
    LogLevel::ALL.into_iter().find(|level| level.as_str() == text).ok_or_else(|| {
        Problem::new(
            "log.level",
            format!("`{text}` is not a level, expected error, warn, info, debug or trace"),
        )
    })
}
