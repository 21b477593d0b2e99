//! `flashweir status`.

mod summary;

use super::admin_client::AdminArgs;
use anyhow::Context as _;
use std::io::Write as _;

/// Show what a running gateway does: why load is as it is, each service's requests, and each upstream.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Print everything as JSON, as the gateway gave it.
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// Asks the gateway and prints its answer.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let answer = self.admin.ask("/status")?;
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
