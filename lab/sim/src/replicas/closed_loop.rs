//! Workers that send a request when the last one is answered, at one server: method 1 of the thesis (§3.2).

use super::scenario::StationModel;
use super::station::{Job, Station};
use super::world::RunError;
use crate::engine::Queue;
use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant, Rng};

/// Results of such a benchmark.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    /// Responses per second.
    pub completed_rps: f64,
    /// Requests that the server had no room for.
    pub failed: u64,
    /// Response times, microseconds.
    pub latency_us: Histogram,
}

/// Runs `workers` against one server. A worker whose request fails does not come back.
///
/// # Errors
/// [`RunError`] when more events wait than the queue holds.
pub fn closed_loop(
    server: StationModel,
    workers: u32,
    length: Duration,
    seed: u64,
) -> Result<ClosedLoop, RunError> {
    let mut station = Station::new(server, Rng::new(seed));
    let mut queue: Queue<Option<u8>> = Queue::new();
    let mut found = ClosedLoop { completed_rps: 0.0, failed: 0, latency_us: Histogram::new() };
    let end = Instant::from_duration(length);
    for _ in 0..workers {
        queue.schedule(Instant::ZERO, None)?;
    }
    while let Some((now, processor)) = queue.pop().filter(|(now, _)| *now <= end) {
        if let Some(processor) = processor {
            let (job, next) = station.done(now, processor);
            if let Some(start) = next {
                queue.schedule(start.until, Some(start.processor))?;
            }
            let latency = job.map_or(Duration::ZERO, |job| now.saturating_since(job.arrived));
            found.latency_us.record(latency.as_micros() as u64);
        }
        match station.arrive(now, Job { arrived: now, document: 0 }) {
            Ok(Some(start)) => queue.schedule(start.until, Some(start.processor))?,
            Ok(None) => {}
            Err(()) => found.failed += 1,
        }
    }
    found.completed_rps = found.latency_us.count() as f64 / length.as_secs_f64();
    Ok(found)
}
