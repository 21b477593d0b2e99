//! `flashweir config`.

mod classify;

use std::io::Write as _;
use std::path::PathBuf;

use classify::ClassifyArgs;
use flashweir_config::{Config, Overrides, reference, schema};

/// Check a configuration file, or print what may be written in one.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check a file as `run` would, the files it names included, without opening a port.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
    /// Say which class a request would get, and what it is worth and promised; sends nothing.
    Classify(ClassifyArgs),
    /// Print the JSON schema of the file, for editors and generators.
    Schema,
    /// Print the reference of all keys, as Markdown.
    Reference,
}

impl ConfigArgs {
    /// Does it.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let text = match self.action {
            Action::Check { file } => {
                Config::load(Some(&file), &Overrides::default())?;
                format!("{}: ok\n", file.display())
            }
            Action::Classify(asked) => asked.answer()?,
            Action::Schema => schema::json_text(),
            Action::Reference => reference::markdown(),
        };
        // Not `print!`, which panics when the reader (`head`, for one) has gone.
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
