//! A run from start to end.

use crate::alarm::Alarm;
use crate::descriptors;
use crate::report::Reporter;
use crate::sender::Sender;
use crate::{LoadError, LoadPlan, LoadResult, Progress};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime;

/// Time for the threads to be ready before the first person comes.
const READY_AFTER: Duration = Duration::from_millis(50);
/// Between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);
/// How long the target may take to accept the one connection that tells whether it is there.
const REACHABLE_WITHIN: Duration = Duration::from_secs(3);

/// Runs the plan to its end, blocking the calling thread, and tells the progress about five times a second.
///
/// Raises the process's limit on open files to the most it may have. One connection is made and closed before
/// the run, to tell at once when nobody listens.
///
/// # Errors
/// A plan out of range, a target that cannot be reached, a machine that gives no threads.
///
/// ```
/// use flashweir_load::{LoadPlan, Schedule, Target};
/// use flashweir_workload::{ArrivalProcess, RateProfile};
/// use std::time::Duration;
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let url = format!("http://{}/", server.local_addr()?);
/// # drop(server);
/// let profile = RateProfile::constant(100.0, Duration::from_secs(1))?;
/// let schedule = Schedule::Drawn { process: ArrivalProcess::Poisson(profile), seed: 1 };
/// match flashweir_load::run(LoadPlan::new(Target::parse(&url)?, schedule), |_| {}) {
///     Ok(result) => println!("{} of {} completed", result.completed, result.offered),
///     Err(error) => println!("{error}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(plan: LoadPlan, mut progress: impl FnMut(&Progress)) -> Result<LoadResult, LoadError> {
    plan.check()?;
    let most_in_flight = (descriptors::raise_and_count() / plan.threads.get()).max(1);
    reach(plan.target.address)?;

    let started = Instant::now() + READY_AFTER;
    let senders: Vec<_> = (0..plan.threads.get())
        .map(|thread| Arc::new(Sender::new(plan.clone(), thread, started, most_in_flight)))
        .collect();
    let (ended, all_ended) = mpsc::channel();
    let threads = senders.iter().map(|sender| start(Arc::clone(sender), ended.clone()));
    let threads = threads.collect::<io::Result<Vec<_>>>().inspect_err(|_| plan.stop.stop());
    let threads = threads.map_err(LoadError::Start)?;
    // From here on only the threads hold the channel, so it also closes when one of them panics.
    drop(ended);

    let mut reporter = Reporter::new(&plan, started, &senders);
    while all_ended.recv_timeout(REPORT_EVERY) != Err(mpsc::RecvTimeoutError::Disconnected) {
        progress(&reporter.look());
    }
    for thread in threads {
        thread.join().map_err(|_| LoadError::Thread)?.map_err(LoadError::Start)?;
    }
    progress(&reporter.look());
    Ok(reporter.conclude())
}

/// The channel carries nothing: its end says that every thread has ended.
fn start(sender: Arc<Sender>, ended: mpsc::Sender<()>) -> io::Result<JoinHandle<io::Result<()>>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let alarm = {
        let _context = runtime.enter();
        Alarm::new()?
    };
    let name = "load-sender".to_owned();
    std::thread::Builder::new().name(name).spawn(move || {
        let _ended = ended;
        runtime.block_on(sender.send_all(alarm))
    })
}

/// One connection, to tell at once when nobody listens rather than after the run.
pub(crate) fn reach(address: SocketAddr) -> Result<(), LoadError> {
    TcpStream::connect_timeout(&address, REACHABLE_WITHIN)
        .map(drop)
        .map_err(|source| LoadError::Unreachable { address, source })
}
