//! Connections of people, from the options that describe them.

use crate::{LoadPlan, Protocol, Sources, TlsOptions, TransportOptions};
use anyhow::{Context, ensure};
use clap::ValueEnum;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How people connect.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connections")]
#[group(skip)]
pub(crate) struct TransportArgs {
    /// HTTP/1.1 with a new connection for each request, or with idle ones reused.
    #[arg(long, value_enum, default_value_t = Connections::New)]
    connections: Connections,
    /// HTTP/2, over connections that people share.
    ///
    /// By agreement (ALPN) with an `https://` URL; an `http://` server has to know it already.
    #[arg(long, conflicts_with = "connections")]
    http2: bool,
    /// At most N connections at once; people who find none free wait for one, first come first served.
    ///
    /// Shared out among the threads, at least one each. The wait counts as latency.
    #[arg(long, value_name = "N", hide_short_help = true)]
    connections_most: Option<NonZeroUsize>,
    /// Client addresses people come from, each person from one.
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    sources: u32,
    /// Where these addresses are: a network that this machine has all of [default: 127.77.0.0/16].
    #[arg(long, value_name = "CIDR", requires = "sources", hide_short_help = true)]
    source_network: Option<String>,
    /// Trust any certificate.
    #[arg(long, conflicts_with = "ca", hide_short_help = true)]
    insecure: bool,
    /// Trust the certificates in a PEM file instead of the system's.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,
    /// Threads that send, each with its share of the people.
    #[arg(long, value_name = "N", default_value = "1", hide_short_help = true)]
    threads: NonZeroUsize,
}

/// Whether people share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Connections {
    /// A new connection for each request, as a crowd of strangers.
    New,
    /// Idle ones reused.
    KeepAlive,
}

impl TransportArgs {
    /// Makes people connect so.
    ///
    /// # Errors
    /// A network that is none, trust without TLS.
    pub(crate) fn apply(&self, plan: &mut LoadPlan) -> anyhow::Result<()> {
        let is_about_trust = self.insecure || self.ca.is_some();
        ensure!(plan.target.tls || !is_about_trust, "--insecure and --ca are about https://, the URL is not");
        plan.sources = self.sources()?;
        plan.threads = self.threads;
        plan.transport = TransportOptions {
            protocol: match self.connections {
                _ if self.http2 => Protocol::Http2,
                Connections::New => Protocol::Http1New,
                Connections::KeepAlive => Protocol::Http1KeepAlive,
            },
            connections_most: self.connections_most.map(|most| (most.get() / self.threads).max(1)),
            tls: TlsOptions { insecure: self.insecure, roots: self.ca.clone() },
        };
        Ok(())
    }

    fn sources(&self) -> anyhow::Result<Sources> {
        let usual = Sources { count: self.sources, ..Sources::default() };
        let Some(text) = &self.source_network else { return Ok(usual) };
        let network = text.parse();
        let network =
            network.with_context(|| format!("--source-network {text}: expected like 10.0.0.0/16"))?;
        Ok(Sources { network, ..usual })
    }
}
