//! `[listen]`: where clients connect.

use crate::overrides::Overrides;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::proxy_networks;
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
    /// An address and port in the clear, or a list of them, at which every request is answered with a
    /// redirect (308) to the same URL over HTTPS, at the port of `address`. Challenges of ACME
    /// (`/.well-known/acme-challenge/`) are passed on to the service instead. Bounds, timeouts and
    /// `proxy_protocol_from` hold there, too; the gate in the kernel does not guard it. Only with
    /// `[listen.tls]`. Needs a restart to change.
    /// Example: `redirect = "0.0.0.0:80"`.
    pub redirect: Option<OneOrMany>,
    /// Networks whose connections begin with a header of the PROXY protocol, version 1 or 2: load balancers
    /// that pass on TCP. The client is then the one that the header names, for every bound, log and field
    /// (docs/behind-a-proxy.md). A connection from there without a header, or with a late one
    /// (`bounds.header_read_timeout`), is closed; from other addresses none is looked for. A reload changes
    /// it for new connections. Too many: clients can forge their address. Too few: a load balancer's
    /// connections are answered 400.
    /// Valid: at most 256 networks, none of them the whole Internet.
    /// Example: `proxy_protocol_from = ["10.0.0.0/8", "192.0.2.7"]`.
    pub proxy_protocol_from: Vec<String>,
    /// Serve HTTPS with this certificate; without this section connections are plain HTTP.
    pub tls: Option<TlsFile>,
}

impl Default for ListenFile {
    fn default() -> Self {
        // Loopback: a first try must not open a port to the world. 8080 needs no privilege.
        let address = OneOrMany(vec!["127.0.0.1:8080".to_owned()]);
        // The header chooses the client's address: only named networks may write it.
        Self { address, redirect: None, proxy_protocol_from: Vec::new(), tls: None }
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
    /// Addresses that redirect to HTTPS; none collides with another one.
    pub redirects: Vec<SocketAddr>,
    /// Networks whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol_from: Vec<IpNet>,
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
    /// Returns whether a connection from this address begins with a header of the PROXY protocol. Linear in
    /// the networks, which are few and mostly none.
    #[must_use]
    pub fn expects_proxy_header(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.proxy_protocol_from.iter().any(|network| network.contains(&peer))
    }

    /// Port that distinguishes one gateway's state file from another's on the same machine.
    pub(super) fn first_port(&self) -> String {
        self.addresses.first().map_or(0, SocketAddr::port).to_string()
    }

    pub(super) fn check(file: ListenFile, directory: &Path) -> Result<Self, Problem> {
        let addresses = check_addresses("listen.address", &file.address.0, &[])?;
        let redirects = match &file.redirect {
            Some(_) if file.tls.is_none() => {
                let what = "redirects to HTTPS, which is not served here, expected `[listen.tls]` beside it";
                return Err(Problem::new("listen.redirect", what));
            }
            Some(texts) => check_addresses("listen.redirect", &texts.0, &addresses)?,
            None => Vec::new(),
        };
        let tls = file
            .tls
            .map(|tls| Tls { certificate: directory.join(tls.certificate), key: directory.join(tls.key) });
        let proxy_protocol_from = proxy_networks("listen.proxy_protocol_from", &file.proxy_protocol_from)?;
        Ok(Self { addresses, redirects, proxy_protocol_from, tls })
    }
}

/// At least one address; none collides with another, or with one that is taken.
fn check_addresses(key: &str, texts: &[String], taken: &[SocketAddr]) -> Result<Vec<SocketAddr>, Problem> {
    if texts.is_empty() {
        return Err(Problem::new(key, "the list is empty, expected at least one address"));
    }
    let mut addresses: Vec<SocketAddr> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let element = if texts.len() == 1 { key.to_owned() } else { format!("{key}[{index}]") };
        let address = socket_address(&element, text)?;
        if let Some(other) = addresses.iter().chain(taken).find(|other| collide(**other, address)) {
            let what = format!("{address} collides with {other}, expected different ones");
            return Err(Problem::new(element, what));
        }
        addresses.push(address);
    }
    Ok(addresses)
}
