//! A run from start to end.

use crate::books::Books;
use crate::sender::Sender;
use crate::{LoadError, LoadPlan, LoadResult, Progress, descriptors, transport};
use flashweir_workload::Part;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime;

/// Time for the threads to be ready before the first person comes.
const READY_AFTER: Duration = Duration::from_millis(50);
/// Between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Runs the plan to its end, blocking the calling thread, and reports the progress about five times a second.
///
/// Raises the process's limit on open files to the most it may have. One connection to each of the target's
/// addresses is made and closed before the run, to report at once when no server listens; the run goes to
/// those that accepted it.
///
/// # Errors
/// A plan out of range, a target that cannot be reached, a machine that gives no threads.
///
/// ```
/// use flashweir_load::{ClassPlan, LoadPlan, LoadTarget};
/// use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
/// use std::time::Duration;
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let url = format!("http://{}/", server.local_addr()?);
/// # drop(server);
/// let profile = RateProfile::constant(100.0, Duration::from_secs(1))?;
/// let schedule = Schedule::one(ArrivalProcess::Poisson(profile), 1);
/// let target = LoadTarget::parse(&url)?;
/// let class = ClassPlan::get(&target)?;
/// match flashweir_load::run(LoadPlan::new(target, schedule, class), |_| {}) {
///     Ok(result) => println!("{} of {} completed", result.totals.completed, result.totals.offered),
///     Err(error) => println!("{error}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(plan: LoadPlan, mut progress: impl FnMut(&Progress)) -> Result<LoadResult, LoadError> {
    run_reporting(plan, &mut progress)
}

/// Not generic, so that it is compiled once and not for each caller's closure.
fn run_reporting(mut plan: LoadPlan, progress: &mut dyn FnMut(&Progress)) -> Result<LoadResult, LoadError> {
    plan.check()?;
    let threads = plan.threads.get();
    let most_in_flight = (descriptors::raise_and_count() / threads).max(1);
    plan.target.addresses = transport::reachable(&plan.target, plan.sources.of(plan.seed, 0, 0))?;

    let started = Instant::now() + starts_in(&plan)?;
    let (ended, all_ended) = mpsc::channel();
    let mut senders = Vec::with_capacity(threads);
    let mut handles = Vec::with_capacity(threads);
    // At most MAX_THREADS, so it fits.
    for part in (0..threads as u32).filter_map(|thread| Part::new(thread, threads as u32)) {
        let part = plan.part.within(part);
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Start)?;
        let sender = {
            let _context = runtime.enter();
            Arc::new(Sender::new(plan.clone(), part, started, most_in_flight)?)
        };
        senders.push(Arc::clone(&sender));
        let handle = start(runtime, sender, ended.clone()).inspect_err(|_| plan.stop.stop());
        handles.push(handle.map_err(LoadError::Start)?);
    }
    // From here on only the threads hold the channel, so it also closes when one of them panics.
    drop(ended);

    let mut books = Books::new(&plan, started, &senders);
    while all_ended.recv_timeout(REPORT_EVERY) != Err(mpsc::RecvTimeoutError::Disconnected) {
        progress(&books.look());
    }
    for handle in handles {
        handle.join().map_err(|_| LoadError::Thread)?.map_err(LoadError::Start)?;
    }
    progress(&books.look());
    Ok(books.conclude())
}

/// The channel carries nothing: its end says that every thread has ended.
fn start(
    runtime: runtime::Runtime,
    sender: Arc<Sender>,
    ended: mpsc::Sender<()>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let name = "load-sender".to_owned();
    std::thread::Builder::new().name(name).spawn(move || {
        let _ended = ended;
        runtime.block_on(sender.send_all())
    })
}

/// Time until the schedule begins.
fn starts_in(plan: &LoadPlan) -> Result<Duration, LoadError> {
    let Some(start_at) = plan.start_at else { return Ok(READY_AFTER) };
    let wait = start_at.duration_since(SystemTime::now()).ok().filter(|wait| *wait >= READY_AFTER);
    wait.filter(|wait| *wait <= LONGEST_WAIT).ok_or_else(|| {
        let why = "the start must lie 50 ms to a day ahead by this machine's clock, or shards do not start together";
        LoadError::Plan(why.to_owned())
    })
}

/// A start further ahead is a typing error.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
