//! One message for whatever is wrong: where, which key, what was expected.

use std::path::PathBuf;

/// Why there is no [`Scenario`](crate::Scenario).
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read at all.
    #[error("{}: cannot read the scenario: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system said; part of the message, so not also its source.
        reason: std::io::Error,
    },
    /// A key of the file is wrong: syntax, unknown key, type, range, or a relation between keys.
    #[error("{file}:{line}: {}{problem}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
    InFile {
        /// The file's name, as it was given.
        file: String,
        /// The line the key (or, for an absent key, its section) is on; the first line is 1.
        line: usize,
        /// The key's full path, `class[0].work`; empty where no key can be told (broken syntax).
        key: String,
        /// What is wrong and what is expected.
        problem: String,
    },
    /// What `--set` says is wrong.
    #[error("--set {setting}: {problem}")]
    InSetting {
        /// As it was given.
        setting: String,
        /// What is wrong and what is expected.
        problem: String,
    },
}
