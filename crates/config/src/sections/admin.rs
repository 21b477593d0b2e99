//! `[admin]`: the listener for health, metrics, status and explanations.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminToken, Listen};
use crate::checks::address::{collide, socket_address};
use crate::checks::name::name;
use crate::error::Problem;
use crate::overrides::Overrides;

/// The listener for health, metrics, status and explanations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdminFile {
    /// Address and port of the admin listener. Needs a restart to change. Without `admin.token_file`
    /// every client that reaches it reads the status and the metrics: keep it on loopback then, or on a
    /// private network.
    /// Example: `address = "10.0.0.4:9900"`.
    pub address: String,
    /// Names with a dot by which it may be asked for, without port. Addresses and names without a dot always work;
    /// anything else is answered 421, so that no page on the web can read it through a visitor's browser. Needs a restart to
    /// change.
    /// Example: `hosts = ["gw1.corp.example"]`.
    pub hosts: Vec<String>,
    /// A file with a secret of one line, which clients send as `Authorization: Bearer SECRET`; without it
    /// they are answered 401, but for `/healthz`, `/readyz` and the reports of replicas. The secret is not
    /// encrypted on its way. Relative to the file of the configuration. Needs a restart to change.
    /// Example: `token_file = "/etc/flashweir/admin.token"`.
    pub token_file: Option<PathBuf>,
}

impl Default for AdminFile {
    fn default() -> Self {
        // Loopback: what it shows is for the operator.
        Self { address: "127.0.0.1:9900".to_owned(), hosts: Vec::new(), token_file: None }
    }
}

/// The admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Collides with no listen address.
    pub address: SocketAddr,
    /// Names by which it may be asked for, in lower case, besides addresses and names without a dot.
    pub hosts: Vec<String>,
    /// Secret that it asks for; with none it answers everybody.
    pub token: Option<AdminToken>,
}

impl Admin {
    pub(super) fn check(file: &AdminFile, directory: &Path, listen: &Listen) -> Result<Self, Problem> {
        let key = "admin.address";
        let address = socket_address(key, &file.address)?;
        for (taken, by) in [(&listen.addresses, "listen.address"), (&listen.redirects, "listen.redirect")] {
            if let Some(other) = taken.iter().find(|other| collide(**other, address)) {
                let what = format!("{address} collides with {by} {other}, expected another port");
                return Err(Problem::new(key, what));
            }
        }
        let hosts = file.hosts.iter().enumerate().map(|(index, host)| {
            let key = format!("admin.hosts[{index}]");
            name(&key, host.to_ascii_lowercase())
        });
        let token = file.token_file.as_ref().map(|path| AdminToken::in_file(directory.join(path)));
        Ok(Self { address, hosts: hosts.collect::<Result<_, _>>()?, token })
    }

    /// Reads the secret, if there is one.
    pub(crate) fn read(&mut self) -> Result<(), Problem> {
        self.token.as_mut().map_or(Ok(()), AdminToken::read)
    }
}

impl AdminFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        if let Some(address) = &overrides.admin_address {
            self.address.clone_from(address);
        }
    }
}
