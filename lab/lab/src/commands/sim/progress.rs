//! Runs on all cores, and how far they are.

use flashweir_core::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time;

/// Sender of a run's progress.
#[derive(Clone, Debug)]
pub(super) struct Shown(Sender<RunProgress>);

#[derive(Clone, Copy, Debug)]
struct RunProgress {
    seed: u64,
    until: Instant,
    events: u64,
}

/// Progress of all runs.
#[derive(Debug, Default)]
struct Progress {
    /// Time reached and events of each run so far.
    runs: BTreeMap<u64, (Duration, u64)>,
}

impl Shown {
    /// Reports the time that this run has reached, and its number of events.
    pub(super) fn tell(&self, seed: u64, until: Instant, events: u64) {
        // The receiver is gone when another run has failed.
        let _unheard = self.0.send(RunProgress { seed, until, events });
    }
}

/// Runs `work` for every seed, one a core at a time, and shows on standard error how far they are; the
/// results come in the order of the seeds.
///
/// # Errors
/// The first seed's that failed; a run that panicked (a checker of the simulator) by its seed.
pub(super) fn on_all_cores<T: Send>(
    seeds: &[u64],
    length: Duration,
    work: impl Fn(u64, &Shown) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(seeds.len().max(1));
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    let mut results: Vec<(usize, anyhow::Result<T>)> = std::thread::scope(|scope| {
        let (next, work) = (&next, &work);
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                let shown = Shown(sender.clone());
                scope.spawn(move || {
                    let mut done = Vec::new();
                    while let Some((place, seed)) = take(next, seeds) {
                        done.push((place, guarded(seed, || work(seed, &shown))));
                    }
                    done
                })
            })
            .collect();
        drop(sender);
        show(&receiver, seeds.len(), length);
        // The work is guarded and nothing else in a worker panics.
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take(next: &AtomicUsize, seeds: &[u64]) -> Option<(usize, u64)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    seeds.get(place).map(|seed| (place, *seed))
}

/// Turns the panic of a checker into an error of its seed; the panic's own message is on standard error by
/// then.
pub(super) fn guarded<T>(seed: u64, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    caught.unwrap_or_else(|_| Err(anyhow::anyhow!("seed {seed}: a checker of the simulator found a mistake")))
}

/// Once a second, until all are done.
fn show(receiver: &Receiver<RunProgress>, runs: usize, length: Duration) {
    let began = time::Instant::now();
    let on_terminal = stderr().is_terminal();
    let (mut progress, mut shown_at, mut shown) = (Progress::default(), began, false);
    loop {
        match receiver.recv_timeout(EVERY) {
            Ok(run) => {
                progress
                    .runs
                    .insert(run.seed, (run.until.saturating_since(Instant::ZERO).min(length), run.events));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if shown_at.elapsed() >= EVERY {
            (shown_at, shown) = (time::Instant::now(), true);
            let line = progress.line(runs, length, began.elapsed());
            // No reader is left when standard error is closed.
            let _unheard =
                if on_terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") };
        }
    }
    let end = if on_terminal && shown { "\r\x1b[K" } else { "" };
    let line = progress.line(runs, length, began.elapsed());
    let _unheard = writeln!(stderr(), "{end}{line}");
}

impl Progress {
    fn line(&self, runs: usize, length: Duration, elapsed: Duration) -> String {
        let reached: f64 = self.runs.values().map(|(time, _)| time.as_secs_f64()).sum();
        let events: u64 = self.runs.values().map(|(_, events)| events).sum();
        let percent = 100.0 * reached / (length.as_secs_f64() * runs as f64).max(f64::MIN_POSITIVE);
        let rate = events as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
        format!(
            "{percent:3.0} % of {runs} runs of {:.0} s, {:.1} million events, {rate:.2} million/s",
            length.as_secs_f64(),
            events as f64 / 1e6
        )
    }
}

const EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_seeds_and_a_panic_is_told_by_its_seed() {
        let seeds: Vec<u64> = (5..25).collect();
        let squares = on_all_cores(&seeds, Duration::from_secs(1), |seed, _| Ok(seed * seed)).unwrap();
        assert!(squares.into_iter().eq(seeds.iter().map(|seed| seed * seed)));
        let failing = |seed: u64, _: &Shown| if seed == 9 { panic!("a test") } else { Ok(()) };
        let failed = on_all_cores(&seeds, Duration::from_secs(1), failing).unwrap_err();
        assert!(format!("{failed:#}").contains("seed 9: a checker"), "{failed:#}");
    }

    #[test]
    fn progress_counts_all_runs() {
        let mut progress = Progress::default();
        progress.runs.insert(1, (Duration::from_secs(10), 4_000_000));
        progress.runs.insert(2, (Duration::from_secs(5), 1_000_000));
        assert_eq!(
            progress.line(4, Duration::from_secs(10), Duration::from_secs(2)),
            " 38 % of 4 runs of 10 s, 5.0 million events, 2.50 million/s"
        );
    }
}
