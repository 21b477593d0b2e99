//! A demo that is ended by a signal takes its children with it.

use crate::demo::children::Family;
use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

/// The shell's convention: 128 plus the number of SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// From now on SIGINT, SIGTERM and SIGHUP end the children, give the terminal back if it is `live`, and exit.
pub(crate) fn end_children_on_signal(family: Family, live: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        });
        let _no_more_children = family.end_all();
        if live {
            ratatui::restore();
        }
        std::process::exit(EXIT_INTERRUPTED);
    };
    // The thread lives as long as the process: it has nothing to hand over that could be lost.
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).context("no thread for signals")?;
    Ok(())
}
