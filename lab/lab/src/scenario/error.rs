//! One message for every kind of fault: where, which key, what was expected.

use std::path::PathBuf;

/// Reason for a missing [`Scenario`](crate::scenario::Scenario).
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read at all.
    #[error("{}: cannot read the scenario: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The operating system's error; part of the message, so not also its source.
        reason: std::io::Error,
    },
    /// A key of the file is wrong: syntax, unknown key, type, range, or a relation between keys.
    #[error("{file}:{line}: {}{problem}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
    InFile {
        /// The file's name, as it was given.
        file: String,
        /// The line the key (or, for an absent key, its section) is on; the first line is 1.
        line: usize,
        /// The key's full path, `class[0].work`; empty where no key is known (broken syntax).
        key: String,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// The value of `--set` is wrong.
    #[error("--set {setting}: {problem}")]
    InSetting {
        /// As it was given.
        setting: String,
        /// The fault, and the accepted form.
        problem: String,
    },
}
