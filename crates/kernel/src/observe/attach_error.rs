//! Reasons for which a program at tc cannot stand at an interface.

use std::io;

use crate::program::LoadError;

/// Reason for which the observer does not stand at an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No such interface.
    #[error("there is no interface `{0}` in this network namespace")]
    NoInterface(String),
    /// The interface carries bare IP packets, as tunnels do.
    #[error("`{0}` is no Ethernet interface, and Flashweir reads Ethernet frames only")]
    NotEthernet(String),
    /// Another owner's filter has the number of the observer's.
    #[error(
        "`{interface}` already has a filter `{program}` where the observer's would be (pref 7, handle 0x7377)"
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// Name of that filter's program; `?` where this process may not know.
        program: String,
    },
    /// A kernel without TCX, where programs of a link would outlive a killed process and go on dropping.
    #[error(
        "`{0}` cannot be shaped: that needs Linux 6.6 or newer (programs at tc that end with their process)"
    )]
    NoTcx(String),
    /// Anything else.
    #[error("`{interface}` does not take the program: {error}")]
    Refused {
        /// The interface.
        interface: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The program itself.
    #[error(transparent)]
    Program(#[from] LoadError),
}
