//! The part of the file that `flashweir router` reads: there is no upstream, no listener for clients, no
//! class.

use std::path::Path;

use super::{Admin, Config, File, FlashCrowd, Gateway, Kernel, Link, Listen, Log, State, apply};
use crate::error::{ConfigError, Problem};
use crate::load::{locate, parse};
use crate::overrides::Overrides;

/// The whole configuration of a router, checked. Sections that only a gateway has a use for are not looked
/// at.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterConfig {
    /// Interfaces and servers that it guards, and how: at least one interface and one server, or neither
    /// where it only divides a link.
    pub kernel: Kernel,
    /// The link that it divides, if there is one.
    pub link: Option<Link>,
    /// The detector and its ceiling; its interval is that of [`Kernel`].
    pub flash_crowd: FlashCrowd,
    /// The admin listener.
    pub admin: Admin,
    /// State that is kept across restarts.
    pub state: State,
    /// Its name.
    pub gateway: Gateway,
    /// Messages on standard error.
    pub log: Log,
}

impl RouterConfig {
    /// Reads and checks the file (or, without one, the defaults), flags first.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`].
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let text = file.map_or(Ok(String::new()), Config::read)?;
        Self::check(&text, file, overrides, |config| config.admin.read())
    }

    /// Checks the text of a configuration file. Pure.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`] that names `file_name` or the flag.
    pub fn from_toml_with(text: &str, file_name: &str, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::check(text, Some(Path::new(file_name)), overrides, |_| Ok(()))
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
        let kernel = Kernel::check(&file.kernel, file.flash_crowd.mode, overrides)?;
        let link = Link::check(&file.link)?;
        let only_divides = link.is_some() && kernel.interfaces.is_empty() && kernel.protect.is_empty();
        if !only_divides {
            kernel.require_interface()?;
        }
        if !only_divides && kernel.protect.is_empty() {
            let what =
                "no server, expected the address and port of at least one, here or as --protect ADDR:PORT";
            return Err(Problem::new("kernel.protect", what));
        }
        let mut flash_crowd = FlashCrowd::check(&file.flash_crowd)?;
        flash_crowd.interval = kernel.interval;
        // Nothing else listens here, so the admin listener may be anywhere.
        let listen = Listen {
            addresses: Vec::new(),
            redirects: Vec::new(),
            proxy_protocol_from: Vec::new(),
            tls: None,
        };
        Ok(Self {
            flash_crowd,
            admin: Admin::check(&file.admin, directory, &listen)?,
            state: State::check(file.state, directory, overrides, "router")?,
            gateway: Gateway::check(file.gateway)?,
            log: Log::check(file.log, directory)?,
            kernel,
            link,
        })
    }
}
