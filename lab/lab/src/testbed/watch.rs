//! Ctrl-C and its like end a run, and all that was built goes.

use anyhow::Context as _;
use flashweir_load::StopFlag;
use tokio::signal::unix::{SignalKind, signal};

/// A flag that SIGINT, SIGTERM and SIGHUP set: the crowd then goes home, which takes its patience at most,
/// and all that was built is taken down as after any run.
pub(crate) fn stop_on_signal() -> anyhow::Result<StopFlag> {
    let stop = StopFlag::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    let flag = stop.clone();
    let wait = move || {
        runtime.block_on(async {
            // Impatience changes nothing: what was built has to go first.
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {}
                }
                eprintln!("ending: the crowd goes home, then the testbed is taken down");
                flag.stop();
            }
        });
    };
    // It ends with the process.
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).context("no thread for signals")?;
    Ok(stop)
}
