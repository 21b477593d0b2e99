//! `--ready-file` of the commands that listen.

use flashweir_config::command::exit::UsageError;
use flashweir_runtime::ReadyFile;
use std::path::PathBuf;

/// The file, found to be writable before any port opens.
pub(crate) fn prepare(file: Option<PathBuf>) -> Result<Option<ReadyFile>, UsageError> {
    file.map(|file| ReadyFile::prepare(&file)).transpose().map_err(|error| UsageError::new(error.to_string()))
}
