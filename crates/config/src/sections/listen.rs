//! `[listen]`: where clients connect.

use crate::overrides::Overrides;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::address::{collide, socket_address};
use crate::error::Problem;
use crate::one_or_many::OneOrMany;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListenFile {
    /// The address and port clients connect to, or a list of them. `0.0.0.0` and `[::]` mean every interface;
    /// host names are not looked up. HTTP/1.1 and HTTP/2 share the port. Needs a restart to change. More
    /// addresses: one more socket per worker each.
    /// Example: `address = ["0.0.0.0:80", "[::]:80"]`.
    pub address: OneOrMany,
    /// Serve HTTPS with this certificate; without this section connections are plain HTTP.
    pub tls: Option<TlsFile>,
}

impl Default for ListenFile {
    fn default() -> Self {
        // Loopback: a first try must not open a port to the world. 8080 needs no privilege.
        Self { address: OneOrMany(vec!["127.0.0.1:8080".to_owned()]), tls: None }
    }
}

/// Serve HTTPS with this certificate. Both files are watched and read again when they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// PEM file with the certificate of this host first, then the intermediate ones.
    /// Example: `certificate = "shop.pem"`.
    pub certificate: PathBuf,
    /// PEM file with the certificate's private key (PKCS#8, PKCS#1 or SEC1).
    /// Example: `key = "shop.key"`.
    pub key: PathBuf,
}

/// Listening addresses for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// At least one address; no two collide.
    pub addresses: Vec<SocketAddr>,
    /// Serve HTTPS with these files.
    pub tls: Option<Tls>,
}

/// The certificate's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM file with the certificate chain.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

impl ListenFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        if !overrides.listen_addresses.is_empty() {
            self.address = OneOrMany(overrides.listen_addresses.clone());
        }
    }
}

impl Listen {
    /// Port that distinguishes one gateway's state file from another's on the same machine.
    pub(super) fn first_port(&self) -> String {
        self.addresses.first().map_or(0, SocketAddr::port).to_string()
    }

    pub(super) fn check(file: ListenFile, directory: &Path) -> Result<Self, Problem> {
        let key = "listen.address";
        let texts = file.address.0;
        if texts.is_empty() {
            return Err(Problem::new(key, "the list is empty, expected at least one address"));
        }
        let mut addresses: Vec<SocketAddr> = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            let element = if texts.len() == 1 { key.to_owned() } else { format!("{key}[{index}]") };
            let address = socket_address(&element, text)?;
            if let Some(other) = addresses.iter().find(|other| collide(**other, address)) {
                return Err(Problem::new(
                    element,
                    format!("{address} collides with {other}, expected different ones"),
                ));
            }
            addresses.push(address);
        }
        let tls = file
            .tls
            .map(|tls| Tls { certificate: directory.join(tls.certificate), key: directory.join(tls.key) });
        Ok(Self { addresses, tls })
    }
}
