//! Checks `[listen]`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::address::{collide, socket_address};
use crate::error::Problem;
use crate::file::ListenFile;

/// Where clients connect.
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

impl Listen {
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
