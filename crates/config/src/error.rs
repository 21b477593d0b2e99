//! One message for every kind of fault: where, which key, what was expected.

use std::path::PathBuf;

/// Reason for a missing [`Config`](crate::Config).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read at all.
    #[error("{}: cannot read the configuration file: {reason}", file.display())]
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
        /// The key's full path, `bounds.max_fields`; empty where no key is known (broken syntax).
        key: String,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// A command-line flag is wrong.
    #[error("{flag}: {problem}")]
    InFlag {
        /// The flag, `--listen`.
        flag: &'static str,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// Something is wrong although there is no file to point into.
    #[error("{key}: {problem}")]
    WithoutFile {
        /// The key's full path.
        key: String,
        /// The fault, and the accepted form.
        problem: String,
    },
}

/// Result of a check, before it is known where the value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) what: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }
}
