//! `flashweir status`.

mod summary;

use super::admin_client::admin_answer;
use anyhow::Context as _;
use std::io::Write as _;
use std::net::SocketAddr;

/// Show what a running gateway does: why load is as it is, each service's requests, and each upstream.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The gateway's admin address.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9900")]
    admin: SocketAddr,
    /// Print everything as JSON, as the gateway gave it.
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// Asks the gateway and prints its answer.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let answer = admin_answer(self.admin, "/status")?;
        let text = match self.json {
            true => format!("{}\n", answer.trim_end()),
            false => {
                let status = serde_json::from_str(&answer).context("the gateway's answer is not JSON")?;
                summary::of(&status)
            }
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
