//! One message for whatever is wrong: where, which key, what was expected.

use std::path::PathBuf;

/// Why there is no [`Config`](crate::Config).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read at all.
    #[error("{}: cannot read the configuration file: {reason}", file.display())]
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
        /// The key's full path, `bounds.max_fields`; empty where no key can be told (broken syntax).
        key: String,
        /// What is wrong and what is expected.
        problem: String,
    },
    /// A command-line flag is wrong.
    #[error("{flag}: {problem}")]
    InFlag {
        /// The flag, `--listen`.
        flag: &'static str,
        /// What is wrong and what is expected.
        problem: String,
    },
    /// Something is wrong although there is no file to point into.
    #[error("{key}: {problem}")]
    WithoutFile {
        /// The key's full path.
        key: String,
        /// What is wrong and what is expected.
        problem: String,
    },
}

/// What a check found, before it is known where the value was written.
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
