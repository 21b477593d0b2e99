//! The asynchronous part of a loop: waiting for a round and for its samples.

use super::Beat;
use crate::clock::Clock;
use flashweir_core::{Duration, Instant};

/// The gates of one or more loops, and the loops.
pub trait Station {
    /// No round waits longer for samples; a late one counts in the next round.
    const SAMPLES_AWAITED: Duration;

    /// The clock of the gates.
    fn clock(&self) -> Clock;
    /// Time at which the next round is due. A station that rests says a later instant.
    fn due(&self, now: Instant) -> Instant;
    /// Resolves when a round is needed before it is due. By default it never does.
    fn woken(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
    /// Follows the configuration in force and asks the gates for samples; how many are to come.
    fn ask(&mut self) -> usize;
    /// Awaits one sample. Whether it is one of those asked for; `None` when no gate is left.
    fn receive(&mut self) -> impl Future<Output = Option<bool>>;
    /// Evaluates the loops; `missing` samples did not come in time.
    fn evaluate(&mut self, missing: usize);
}

/// Runs a station's rounds until the future is dropped. `beat` shows the [`StallWatch`](super::StallWatch)
/// that they go on.
pub async fn run<S: Station>(mut station: S, beat: Beat) {
    loop {
        let clock = station.clock();
        let due = station.due(clock.now());
        // Over when the round is due or needed: the same to the round.
        let _ = tokio::time::timeout_at(clock.timer_at(due), station.woken()).await;
        let mut missing = station.ask();
        let all = async {
            while missing > 0
                && let Some(is_awaited) = station.receive().await
            {
                missing -= usize::from(is_awaited);
            }
        };
        // The samples that came count, whether all did or not.
        let _ = tokio::time::timeout(S::SAMPLES_AWAITED, all).await;
        station.evaluate(missing);
        beat.beat();
    }
}
