//! Reads the file and says where in it something is wrong.

use std::path::Path;

use crate::error::{ConfigError, Problem};
use crate::files_read;
use crate::location::{line_at, line_of_key};
use crate::overrides::Overrides;
use crate::sections::{Config, File, Service};

impl Config {
    /// Reads and checks the file (or, without one, the defaults), flags first. Also opens the files it names
    /// (certificate, key, authorities) and reads the API keys, so that an unreadable one is found before any
    /// port opens.
    ///
    /// # Errors
    /// The first thing wrong, as one [`ConfigError`].
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Self::check("", None, overrides, files_read::read);
        };
        Self::check(&Self::read(path)?, Some(path), overrides, files_read::read)
    }

    pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
        std::fs::read_to_string(path)
            .map_err(|reason| ConfigError::Unreadable { file: path.to_owned(), reason })
    }

    /// Checks the text of a configuration file. Pure: the files it names are not opened, and API keys in
    /// files stay unknown.
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

    /// The service for every host that no other has; without one, requests for such hosts have no service
    /// here.
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
}

pub(crate) fn parse(text: &str, path: Option<&Path>) -> Result<File, ConfigError> {
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

pub(crate) fn locate(
    problem: Problem,
    text: &str,
    path: Option<&Path>,
    overrides: &Overrides,
) -> ConfigError {
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
