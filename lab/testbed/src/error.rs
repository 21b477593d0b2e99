//! Errors of a testbed.

use std::io;

/// Reason for which a testbed cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// This machine or user lacks something.
    #[error("{0}")]
    Missing(String),
    /// A program that makes networks failed.
    #[error("{command}: {said}")]
    Program {
        /// The whole command.
        command: String,
        /// Its own message.
        said: String,
    },
    /// The kernel refused something.
    #[error("{what}: {error}")]
    Kernel {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// A program answered in an unexpected form.
    #[error("{what} cannot be read: {text}")]
    Answer {
        /// The requested value.
        what: &'static str,
        /// The answer.
        text: String,
    },
}

impl TestbedError {
    /// For `map_err`: the kernel refused an order.
    pub(crate) fn kernel(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Kernel { what, error }
    }
}
