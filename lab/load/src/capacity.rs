//! Capacity of a server, measured by keeping it busy.

use crate::transport::{self, Prepared, Protocol, Transport, TransportOptions};
use crate::{LoadError, LoadTarget, descriptors};
use bytes::Bytes;
use http::Method;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::task::JoinSet;

/// The first part of the time is not measured: caches, connections and clocks settle.
const WARM_UP: f64 = 0.2;
/// The rest is measured in this many windows; odd, so that there is a middle one.
const WINDOWS: u32 = 5;
/// After a failed request, so that a broken server is not hammered.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
/// Longer measurements tell nothing more, and every completion is remembered until the end.
const LONGEST: Duration = Duration::from_secs(600);

/// Requests per second that the target completes (2xx or 3xx) while `concurrency` requests are kept in flight
/// for `duration`: a closed loop on kept-alive connections, which finds the capacity but never overloads. The
/// median of five windows after a warm-up. Blocks the calling thread.
///
/// # Errors
/// A URL that cannot be loaded, a target that cannot be reached, no completion in a window or before the
/// first, or more than 1 % failures.
pub fn measure_capacity(url: &str, concurrency: usize, duration: Duration) -> Result<f64, LoadError> {
    let mut target = LoadTarget::parse(url)?;
    let most = descriptors::raise_and_count();
    if concurrency == 0 || concurrency > most {
        return Err(LoadError::Plan(format!("concurrency must be 1 to {most}, not {concurrency}")));
    }
    if duration.is_zero() || duration > LONGEST {
        return Err(LoadError::Plan(format!("a capacity is measured for up to {} s", LONGEST.as_secs())));
    }
    target.addresses = transport::reachable(&target, None)?;
    let options = TransportOptions { protocol: Protocol::Http1KeepAlive, ..TransportOptions::default() };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Start)?;
    let loops = Arc::new(Loops {
        transport: Transport::new(&target, &options)?,
        request: Prepared::new(&target, Method::GET, &[], Bytes::new())?,
        path: target.path.clone(),
        started: Instant::now(),
        completions: Mutex::default(),
        failed: AtomicU64::new(0),
    });
    runtime.block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..concurrency {
            all.spawn(Arc::clone(&loops).ask_for_ever());
        }
        // The loops never end by themselves: the measurement ends them when its time is over.
        tokio::time::sleep_until((loops.started + duration).into()).await;
        all.shutdown().await;
    });
    let failed = loops.failed.load(Ordering::Relaxed);
    let completions = loops.completions.lock().unwrap_or_else(PoisonError::into_inner);
    let completed = completions.len() as u64;
    rate(&completions, duration).filter(|_| failed * 100 <= completed).ok_or_else(|| {
        let url = target.to_string();
        LoadError::Capacity { url, completed, failed }
    })
}

/// State that the loops share.
struct Loops {
    transport: Transport,
    request: Prepared,
    path: String,
    started: Instant,
    /// Completion times of all requests, since the start, in order.
    completions: Mutex<Vec<Duration>>,
    failed: AtomicU64,
}

impl Loops {
    async fn ask_for_ever(self: Arc<Self>) {
        loop {
            match self.transport.ask(None, &self.request, &self.path, || ()).await {
                Ok(answer) if (200..=399).contains(&answer.status) => {
                    let mut completions = self.completions.lock().unwrap_or_else(PoisonError::into_inner);
                    completions.push(answer.end_at.saturating_duration_since(self.started));
                }
                _ => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }
}

/// The median of the windows' rates; `None` if a window holds no completion, or none comes before the first.
fn rate(completions: &[Duration], duration: Duration) -> Option<f64> {
    let warm = duration.mul_f64(WARM_UP);
    let width = (duration - warm) / WINDOWS;
    let mut rates = (0..WINDOWS)
        .map(|window| {
            let from = warm + width * window;
            let before = completions.partition_point(|at| *at < from);
            let until = completions.partition_point(|at| *at < from + width);
            // From completion to completion rather than over the window: its edges would cost a request's
            // accuracy. From the last one before it, since workers that keep in step complete several at
            // once, and a window that began with the first of several would count them but not the time they
            // took.
            let (first, last) =
                (completions.get(before.checked_sub(1)?)?, completions.get(until.checked_sub(1)?)?);
            let span = last.saturating_sub(*first).as_secs_f64();
            (span > 0.0).then(|| (until - before) as f64 / span)
        })
        .collect::<Option<Vec<f64>>>()?;
    rates.sort_by(f64::total_cmp);
    Some(rates[rates.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_steady_one() {
        let every_5_ms = (0..400).map(|n| Duration::from_millis(5 * n));
        // A slow start and one window with a hiccup change nothing.
        let hiccup = Duration::from_millis(900)..Duration::from_millis(1050);
        let completions: Vec<_> =
            every_5_ms.filter(|at| !hiccup.contains(at) && *at > Duration::from_millis(300)).collect();
        let rate = rate(&completions, Duration::from_secs(2)).unwrap();
        assert!((rate - 200.0).abs() < 0.5, "{rate}");
    }

    #[test]
    fn workers_in_step_are_not_counted_twice() {
        for stagger_ms in [0, 1, 7] {
            let three_each_60_ms =
                (0..34).flat_map(|round| (0..3).map(move |worker| 60 * round + stagger_ms * worker));
            let completions: Vec<_> = three_each_60_ms.map(Duration::from_millis).collect();
            let rate = rate(&completions, Duration::from_secs(2)).unwrap();
            assert!((rate - 50.0).abs() < 2.0, "{rate} with {stagger_ms} ms between them");
        }
    }

    #[test]
    fn too_little_gives_no_rate() {
        assert_eq!(rate(&[], Duration::from_secs(1)), None);
        assert_eq!(rate(&[Duration::from_millis(500)], Duration::from_secs(1)), None);
    }
}
