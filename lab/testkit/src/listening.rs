//! Listening address of a command, as it says itself.

use std::net::SocketAddr;
use std::path::Path;

/// The name that tests give to `--ready-file`.
pub const READY_FILE: &str = "ready.json";

/// Content of a command's ready file.
#[derive(Clone, Debug)]
pub struct Listening(serde_json::Value);

impl Listening {
    /// The content of `ready.json` in the command's directory; `None` until the command listens.
    ///
    /// # Panics
    /// When the file is there and is no JSON: it has to appear whole.
    #[must_use]
    pub fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(directory.join(READY_FILE)).ok()?;
        Some(Self(
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{READY_FILE}: {error}: {text}")),
        ))
    }

    /// The process that wrote it.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        self.0["pid"].as_u64()
    }

    /// The addresses of a role, such as `listen` or `admin`.
    #[must_use]
    pub fn addresses(&self, role: &str) -> Vec<SocketAddr> {
        let addresses = self.0[role].as_array().into_iter().flatten();
        addresses.filter_map(|address| address.as_str()?.parse().ok()).collect()
    }

    /// The first address of a role.
    ///
    /// # Panics
    /// When the command has no such address.
    #[must_use]
    pub fn address(&self, role: &str) -> SocketAddr {
        *self.addresses(role).first().unwrap_or_else(|| panic!("no address of `{role}` in {}", self.0))
    }
}
