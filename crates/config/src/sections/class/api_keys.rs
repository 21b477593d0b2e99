//! API keys of a class: where requests carry them, and which they are.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashweir_core::limits::{API_KEY_BYTES, API_KEYS, API_KEYS_FILE_BYTES};
use http::HeaderName;

use super::ApiKeysFile;
use super::names::field_name;
use crate::error::Problem;

/// Clients that show one of these keys. Never prints a key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeys {
    /// Place of the key in a request.
    pub place: KeyPlace,
    /// The file they come from, read by [`Config::load`](crate::Config::load).
    pub file: Option<PathBuf>,
    keys: Arc<HashSet<Box<[u8]>>>,
}

/// Place of the key in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this field; the word `Bearer` before it is left out.
    Header(HeaderName),
    /// In this parameter of the query.
    Query(Box<str>),
}

impl ApiKeys {
    pub(super) fn check(key: &str, file: ApiKeysFile, directory: &Path) -> Result<Self, Problem> {
        let place = match (file.header, file.query) {
            (Some(name), None) => KeyPlace::Header(field_name(&format!("{key}.header"), &name)?),
            (None, Some(name)) => KeyPlace::Query(parameter(&format!("{key}.query"), name)?),
            _ => {
                return Err(Problem::new(
                    key,
                    "expected either `header` or `query`: where a request carries its key",
                ));
            }
        };
        match (file.keys, file.file) {
            (Some(keys), None) => {
                let key = format!("{key}.keys");
                let keys = keys.0.iter().enumerate();
                let keys: HashSet<_> = keys
                    .map(|(index, text)| {
                        one_key(text).map_err(|why| Problem::new(format!("{key}[{index}]"), why))
                    })
                    .collect::<Result<_, _>>()?;
                if keys.is_empty() {
                    return Err(Problem::new(key, "the list is empty, expected at least one key"));
                }
                Ok(Self { place, file: None, keys: Arc::new(keys) })
            }
            (None, Some(path)) => Ok(Self { place, file: Some(directory.join(path)), keys: Arc::default() }),
            _ => Err(Problem::new(key, "expected either `keys` or `file`: which keys it is about")),
        }
    }

    /// Reads the file, if they come from one.
    pub(crate) fn read(&mut self, key: &str) -> Result<(), Problem> {
        let Some(path) = &self.file else { return Ok(()) };
        let keys = read_keys(path).map_err(|why| {
            Problem::new(key, format!("`{}`: {why}, expected one key a line", path.display()))
        })?;
        self.keys = Arc::new(keys);
        Ok(())
    }

    /// Returns whether this is one of them.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    /// Returns whether each client that shows one of `other` shows one of these: known only where both come
    /// from one file, or when the keys stand in the configuration.
    pub(super) fn cover(&self, other: &Self) -> bool {
        let same_file = self.file.is_some() && self.file == other.file;
        let all_known = other.file.is_none() && other.keys.is_subset(&self.keys);
        self.place == other.place && (same_file || all_known)
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeys").field("place", &self.place).field("count", &self.keys.len()).finish()
    }
}

fn parameter(key: &str, name: String) -> Result<Box<str>, Problem> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'&' | b'=' | b'#' | b'?');
    if name.is_empty() || !name.bytes().all(fits) {
        return Err(Problem::new(
            key,
            format!("`{name}` is not a parameter's name, expected one like \"key\""),
        ));
    }
    Ok(name.into())
}

/// Says what is wrong without saying the key.
fn one_key(text: &str) -> Result<Box<[u8]>, String> {
    if text.is_empty() || text.len() > API_KEY_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "not a key, expected 1 to {API_KEY_BYTES} visible ASCII characters without blanks"
        ));
    }
    Ok(text.as_bytes().into())
}

fn read_keys(path: &Path) -> Result<HashSet<Box<[u8]>>, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(API_KEYS_FILE_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| format!("cannot read it: {error}"))?;
    if text.len() as u64 > API_KEYS_FILE_BYTES {
        return Err(format!("it is larger than {API_KEYS_FILE_BYTES} bytes"));
    }
    let mut keys = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        keys.insert(one_key(line).map_err(|why| format!("line {}: {why}", index + 1))?);
        if keys.len() > API_KEYS {
            return Err(format!("it has more than {API_KEYS} keys"));
        }
    }
    if keys.is_empty() {
        return Err("it holds no key".to_owned());
    }
    Ok(keys)
}
