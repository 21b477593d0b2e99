//! `flashweir explain`.

mod readable;

use super::admin_client::AdminArgs;
use flashweir_config::command::exit::UsageError;
use flashweir_core::DecisionId;
use std::io::Write as _;

/// Tell why a request was refused: the decision, the limits, which one bound and the numbers behind it.
///
/// The id is in the refusal's `Flashweir-Decision` field. Each worker remembers its latest decisions only.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The decision's id: 13 letters and digits.
    id: String,
    #[command(flatten)]
    admin: AdminArgs,
    /// Print the answer as JSON, as the gateway gave it.
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// Asks the gateway and prints its answer.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let id: DecisionId =
            self.id.parse().map_err(|error| UsageError::new(format!("`{}` is {error}", self.id)))?;
        let answer = self.admin.ask(&format!("/explain/{id}"))?;
        let text =
            if self.json { format!("{}\n", answer.trim_end()) } else { readable::explanation(&answer)? };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
