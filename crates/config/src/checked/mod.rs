//! The configuration that cannot be wrong: typed units, every range and relation checked.

mod address;
mod api_keys;
mod bounds;
mod candidate;
mod class;
mod client;
mod glob;
mod kernel;
mod kernel_tiers;
mod listen;
mod name;
mod process;
mod range;
mod restart;
mod router;
mod rules;
mod sentry;
mod service;
mod upstream;
mod url;

pub use api_keys::{ApiKeys, KeyPlace};
pub use bounds::Bounds;
pub use candidate::Candidate;
pub use class::{Class, FairBy};
pub use client::Client;
pub use glob::Glob;
pub use kernel::Kernel;
pub use kernel_tiers::KernelTiers;
pub use listen::{Listen, Tls};
pub use process::{Admin, FlashCrowd, Gateway, Log, State};
pub use router::RouterConfig;
pub use rules::{ClassRules, CookieRule, FieldRule};
pub use sentry::{LadderStep, Sentry};
pub use service::{HostPattern, Service};
pub use upstream::{ActiveHealth, Health, Upstream};

use std::net::SocketAddr;
use std::path::Path;

use serde::de::{DeserializeOwned, IntoDeserializer as _, value};

use self::service::Written;
use crate::error::{ConfigError, Problem};
use crate::file::{File, OneOrMany, SentryFile, UpstreamFile};
use crate::files_read;
use crate::location::{line_at, line_of_key};
use crate::overrides::Overrides;
use crate::text::DurationText;

/// Everything Flashweir was told, checked. Plain data: cloning and comparing are cheap, nothing is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// The services that are protected, at least one: first the one for every host that no other has, if there is one.
    pub services: Vec<Service>,
    /// Who the clients are and what one of them may hold.
    pub client: Client,
    /// Bounds and timeouts of the gateway itself.
    pub bounds: Bounds,
    /// The detector and its ceiling.
    pub flash_crowd: FlashCrowd,
    /// What is done in the kernel, before the TCP stack.
    pub kernel: Kernel,
    /// The admin listener.
    pub admin: Admin,
    /// What is kept across restarts.
    pub state: State,
    /// This gateway as a whole.
    pub gateway: Gateway,
    /// Messages on standard error.
    pub log: Log,
}

impl Config {
    /// Reads and checks the file (or, without one, the defaults), flags first. Also opens the files it names
    /// (certificate, key, authorities) and reads the API keys, so that an unreadable one is found before any port
    /// opens.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`].
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Self::check("", None, overrides, files_read::read);
        };
        Self::check(&Self::read(path)?, Some(path), overrides, files_read::read)
    }

    fn read(path: &Path) -> Result<String, ConfigError> {
        std::fs::read_to_string(path)
            .map_err(|reason| ConfigError::Unreadable { file: path.to_owned(), reason })
    }

    /// Checks the text of a configuration file. Pure: the files it names are not opened, and API keys in files stay
    /// unknown.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`] that names `file_name`.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, ConfigError> {
        Self::from_toml_with(text, file_name, &Overrides::default())
    }

    /// As [`from_toml`](Self::from_toml), with flags that win over the file.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`] that names `file_name` or the flag.
    pub fn from_toml_with(text: &str, file_name: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::check(text, Some(Path::new(file_name)), overrides, |_| Ok(()))
    }

    /// The service for every host that no other has; without one, requests for such hosts are for nobody here.
    #[must_use]
    pub fn default_service(&self) -> Option<&Service> {
        self.services.first().filter(|service| service.hosts.is_empty())
    }

    fn check(
        text: &str,
        path: Option<&Path>,
        overrides: &Overrides,
        inspect: impl FnOnce(&mut Self) -> Result<(), Problem>,
    ) -> Result<Self, ConfigError> {
        let file = parse(text, path)?;
        let directory = path.and_then(Path::parent).unwrap_or(Path::new(""));
        let checked = Self::from_file(file, directory, overrides).and_then(|mut config| {
            inspect(&mut config)?;
            Ok(config)
        });
        checked.map_err(|problem| locate(problem, text, path, overrides))
    }

    fn from_file(mut file: File, directory: &Path, overrides: &Overrides) -> Result<Self, Problem> {
        let leaves_rest = leaves_other_hosts(&file, overrides)?;
        apply(&mut file, overrides)?;
        let listen = Listen::check(file.listen, directory)?;
        let bounds = Bounds::check(&file.bounds)?;
        let gateway = Gateway::check(file.gateway)?;
        let first = Written {
            upstream: file.upstream,
            sentry: file.sentry,
            class: file.class,
            candidate: file.candidate,
        };
        let first = (!leaves_rest).then_some(first);
        let config = Self {
            services: Service::check_all(&gateway.name, first, file.service, directory, &listen)?,
            client: Client::check(&file.client, &bounds)?,
            flash_crowd: FlashCrowd::check(&file.flash_crowd)?,
            kernel: Kernel::check(&file.kernel, file.flash_crowd.mode, overrides)?,
            admin: Admin::check(&file.admin, &listen)?,
            state: State::check(file.state, directory, overrides, &first_port(&listen))?,
            gateway,
            log: Log { level: file.log.level, format: file.log.format },
            listen,
            bounds,
        };
        Ok(config)
    }
}

/// What tells one gateway's state file from another's on the same machine.
fn first_port(listen: &Listen) -> String {
    listen.addresses.first().map_or(0, SocketAddr::port).to_string()
}

/// Whether there is no service for hosts that no `[[service]]` names. As it was written, before flags are put in place:
/// what they say of every service does not make one.
fn leaves_other_hosts(file: &File, overrides: &Overrides) -> Result<bool, Problem> {
    let has_servers = file.upstream != UpstreamFile::default() || !overrides.upstream_urls.is_empty();
    if has_servers || file.service.is_empty() {
        return Ok(false);
    }
    let policy = [
        ("sentry", file.sentry != SentryFile::default()),
        ("class[0]", !file.class.is_empty()),
        ("candidate", file.candidate.is_some()),
    ];
    match policy.into_iter().find(|(_, is_written)| *is_written) {
        Some((key, _)) => Err(Problem::new(
            key,
            "has no use without upstream.urls, expected it in the `[[service]]` it is for",
        )),
        None => Ok(true),
    }
}

/// Puts the flags in place of what was written, so that both go through the same checks.
fn apply(file: &mut File, overrides: &Overrides) -> Result<(), Problem> {
    if !overrides.upstream_urls.is_empty() {
        file.upstream.urls.clone_from(&overrides.upstream_urls);
    }
    if !overrides.listen_addresses.is_empty() {
        file.listen.address = OneOrMany(overrides.listen_addresses.clone());
    }
    if let Some(address) = &overrides.admin_address {
        file.admin.address.clone_from(address);
    }
    if let Some(workers) = overrides.workers {
        file.gateway.workers = u32::try_from(workers).unwrap_or(u32::MAX);
    }
    if let Some(level) = &overrides.log_level {
        file.log.level = process::log_level(level)?;
    }
    if !overrides.interfaces.is_empty() {
        file.kernel.interface = Some(OneOrMany(overrides.interfaces.clone()));
    }
    if !overrides.protect.is_empty() {
        file.kernel.protect.clone_from(&overrides.protect);
    }
    if let Some(mode) = &overrides.mode {
        file.flash_crowd.mode = variant("flash_crowd.mode", mode)?;
    }
    if let Some(interval) = overrides.interval {
        file.kernel.interval = Some(DurationText(interval));
    }
    if let Some(refusal) = &overrides.refusal {
        file.kernel.refusal = variant("kernel.refusal", refusal)?;
    }
    if let Some(pin) = &overrides.pin {
        file.kernel.pin = Some(pin.clone());
    }
    file.kernel.fail_closed |= overrides.fail_closed;
    file.kernel.shadow |= overrides.shadow;
    file.flash_crowd.shadow |= overrides.shadow;
    let others = file.service.iter_mut().map(|service| &mut service.sentry);
    others.chain([&mut file.sentry]).for_each(|sentry| sentry.shadow |= overrides.shadow);
    Ok(())
}

/// One of a few words, as the file would have it.
fn variant<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, Problem> {
    let read = T::deserialize(text.into_deserializer());
    read.map_err(|error: value::Error| Problem::new(key, error.to_string()))
}

fn parse(text: &str, path: Option<&Path>) -> Result<File, ConfigError> {
    let name = path.map_or_else(String::new, |path| path.display().to_string());
    let in_file = |key: String, error: &toml::de::Error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        // "key" is the file's word; serde says "field".
        let problem =
            error.message().replace("unknown field", "unknown key").replace("missing field", "missing key");
        ConfigError::InFile { file: name.clone(), line, key, problem }
    };
    let document = toml::Deserializer::parse(text).map_err(|error| in_file(String::new(), &error))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let key = error.path().to_string();
        in_file(if key == "." { String::new() } else { key }, error.inner())
    })
}

fn locate(problem: Problem, text: &str, path: Option<&Path>, overrides: &Overrides) -> ConfigError {
    let Problem { key, what: problem } = problem;
    if let Some(flag) = overrides.flag_for(&key) {
        return ConfigError::InFlag { flag, problem };
    }
    match path {
        Some(path) => {
            let line = line_of_key(text, &key);
            ConfigError::InFile { file: path.display().to_string(), line, key, problem }
        }
        None => ConfigError::WithoutFile { key, problem },
    }
}
