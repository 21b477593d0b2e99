//! `[listen]`: where clients connect.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OneOrMany;

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
