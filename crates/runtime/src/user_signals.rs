//! SIGUSR1 and SIGUSR2, which scripts that rotate logs send to servers.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Keeps both from ending the process, as is their default. The log goes to standard error, so there is no
/// file to open again; the log says so. Must be called in the runtime that serves.
///
/// # Errors
/// Errors of the operating system; none is expected.
pub fn outlive_user_signals() -> io::Result<()> {
    for kind in [SignalKind::user_defined1(), SignalKind::user_defined2()] {
        let mut received = signal(kind)?;
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                tracing::info!(
                    signal = kind.as_raw_value(),
                    "nothing to do: the log goes to standard error (a file there is rotated by copying and truncating it)"
                );
            }
        });
    }
    Ok(())
}
