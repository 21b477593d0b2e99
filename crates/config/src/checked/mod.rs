//! The configuration that cannot be wrong: typed units, every range and relation checked.

mod address;
mod api_keys;
mod bounds;
mod class;
mod client;
mod glob;
mod listen;
mod name;
mod process;
mod range;
mod restart;
mod rules;
mod sentry;
mod service;
mod upstream;
mod url;

pub use api_keys::{ApiKeys, KeyPlace};
pub use bounds::Bounds;
pub use class::{Class, FairBy};
pub use client::Client;
pub use glob::Glob;
pub use listen::{Listen, Tls};
pub use process::{Admin, FlashCrowd, Gateway, Log, State};
pub use rules::{ClassRules, CookieRule, FieldRule};
pub use sentry::{LadderStep, Sentry};
pub use service::{HostPattern, Service};
pub use upstream::{ActiveHealth, Health, Upstream};

use std::path::Path;

use self::service::Written;
use crate::error::{ConfigError, Problem};
use crate::file::{File, OneOrMany};
use crate::files_read;
use crate::location::{line_at, line_of_key};
use crate::overrides::Overrides;
use crate::text::DurationText;

/// Everything Flashweir was told, checked. Plain data: cloning and comparing are cheap, nothing is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// The services that are protected, at least one: first the one for every host that no other has.
    pub services: Vec<Service>,
    /// Who the clients are and what one of them may hold.
    pub client: Client,
    /// Bounds and timeouts of the gateway itself.
    pub bounds: Bounds,
    /// The detector and its ceiling.
    pub flash_crowd: FlashCrowd,
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
        let text = std::fs::read_to_string(path)
            .map_err(|reason| ConfigError::Unreadable { file: path.to_owned(), reason })?;
        Self::check(&text, Some(path), overrides, files_read::read)
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

    /// The service for every host that no other has.
    ///
    /// # Panics
    /// Never: a checked configuration has it.
    #[must_use]
    pub fn default_service(&self) -> &Service {
        self.services.first().expect("the service of the top level is always there")
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
        apply(&mut file, overrides)?;
        let listen = Listen::check(file.listen, directory)?;
        let bounds = Bounds::check(&file.bounds)?;
        let gateway = Gateway::check(file.gateway)?;
        let first = Written { upstream: file.upstream, sentry: file.sentry, class: file.class };
        let first = (gateway.name.clone(), first);
        let config = Self {
            services: Service::check_all(first, file.service, directory, &listen)?,
            client: Client::check(&file.client, &bounds)?,
            flash_crowd: FlashCrowd::check(&file.flash_crowd)?,
            admin: Admin::check(&file.admin, &listen)?,
            state: State::check(file.state, directory, overrides, &listen)?,
            gateway,
            log: Log { level: file.log.level, format: file.log.format },
            listen,
            bounds,
        };
        Ok(config)
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
    file.flash_crowd.shadow |= overrides.shadow;
    let others = file.service.iter_mut().map(|service| &mut service.sentry);
    others.chain([&mut file.sentry]).for_each(|sentry| sentry.shadow |= overrides.shadow);
    Ok(())
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
