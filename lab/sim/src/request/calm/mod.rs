//! Do no harm: no request is refused while nothing is short. The checker knows the origin, and nothing of the
//! rule that it judges.
//!
//! For each class, E is the number of completions to expect at an unloaded origin of the requests in flight,
//! and D of those that came:
//!
//! ```text
//! E = Σ over requests in flight of Λ(age at the end) − Λ(age at the start)
//! ```
//!
//! with the class's true cumulative hazard Λ (Nelson–Aalen over times drawn from its distributions; beyond
//! the longest it grows by age over that time). At an origin that takes s times as long as when it is
//! unloaded, D/E ≈ 1/s. Each class is judged at the end of a window of [`WINDOW`]: over the window where E in
//! it is [`EXPOSURE_LEAST`] at least, or over the shortest time up to its end, [`LOOK_BACK`] at most, in
//! which it is. A class without as much says nothing (polls at a cold start). The window is **calm** when at
//! least one class is judged, and |D/E − 1| ≤ [`TOLERANCE`] for each that is. It is *exposed* when E of all
//! classes in the window itself is [`EXPOSURE_LEAST`] at least: a rule that refuses nearly all leaves itself
//! without exposure, and is judged by what was found before.
//!
//! A calm window is **broken** by each request that the sentry refuses in it, with one exception, which the
//! simulator knows and D/E does not show: an origin **at full use**, whose processors, or workers, were busy
//! to [`FULL_USE`] over the tenth of a second before the refusal, or over the half second. As many requests
//! in flight as there are processors take no longer than alone, and the others have to be refused.
//!
//! Not judged: refusals by other stages than the sentry. Cost: for each request a search for each bin that it
//! was in flight in; memory of 24 bytes for each bin and class.

mod hazard;
mod report;

pub use report::{BrokenWindow, CalmReport};

use super::gate::ShedReason;
use super::{ClassModel, Scenario};
use flashweir_core::{Duration, Instant, Reason, Rng};
use hazard::CumulativeHazard;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(2);
/// Completions to expect before D/E says anything: its standard deviation is then 0.22 at most.
pub const EXPOSURE_LEAST: f64 = 20.0;
/// Time before the end of a window in which a class's completions are looked for.
pub const LOOK_BACK: Duration = Duration::from_secs(60);
/// Difference of D/E from 1 up to which an origin is as fast as when it is unloaded.
pub const TOLERANCE: f64 = 0.2;
/// Share of the processors or workers from which on the origin is at full use.
pub const FULL_USE: f64 = 0.9;

/// Evidence of one class in one bin.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    expected: f64,
    completed: u32,
    refused: u32,
}

/// Collects evidence while a run goes on.
#[derive(Debug)]
pub(super) struct CalmCheck {
    /// Of each class, warm and cold.
    hazards: Vec<[CumulativeHazard; 2]>,
    /// By class and bin.
    bins: Vec<Vec<Evidence>>,
    bin_s: f64,
}

impl CalmCheck {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let root = Rng::new(scenario.seed).fork(CALM);
        let hazards = scenario.classes.iter().zip(0..);
        Self {
            hazards: hazards.map(|(class, number)| unloaded(class, &root.fork(number))).collect(),
            bins: vec![vec![Evidence::default(); scenario.bins()]; scenario.classes.len()],
            bin_s: scenario.bin.as_secs_f64(),
        }
    }

    /// A request of the class, cold or not, was in flight between these moments, and completed at the second
    /// or left.
    pub(super) fn ended(
        &mut self,
        (class, is_cold): (u16, bool),
        started: Instant,
        ended: Instant,
        is_completed: bool,
    ) {
        let class = usize::from(class);
        let (started_s, ended_s) = (started.as_secs_f64(), ended.as_secs_f64());
        let (hazard, bins) = (&self.hazards[class][usize::from(is_cold)], &mut self.bins[class]);
        let (first, last) = ((started_s / self.bin_s) as usize, (ended_s / self.bin_s) as usize);
        let mut before = 0.0;
        for (index, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let until_s = ended_s.min((index + 1) as f64 * self.bin_s);
            // A request that takes exactly its time alone is past it, however its age is rounded.
            let until = hazard.at(until_s - started_s + ROUNDING_S);
            bin.expected += until - before;
            before = until;
        }
        if let Some(bin) = bins.get_mut(last) {
            bin.completed += u32::from(is_completed);
        }
    }

    /// The gate refused a request of the class.
    pub(super) fn refused(&mut self, now: Instant, class: u16, reason: ShedReason) {
        let index = (now.as_secs_f64() / self.bin_s) as usize;
        if is_by_sentry(reason)
            && let Some(bin) = self.bins[usize::from(class)].get_mut(index)
        {
            bin.refused += 1;
        }
    }
}

/// Hazards of a class's time alone, its wait and then its work: warm, and cold.
fn unloaded(class: &ClassModel, rng: &Rng) -> [CumulativeHazard; 2] {
    let after = |cold: Duration| {
        CumulativeHazard::of((0..DRAWS).map(|draw| {
            let (wait, work) = (rng.fork(2 * draw), rng.fork(2 * draw + 1));
            let bytes = || class.sizes.bytes(0, draw as u32);
            cold + class.wait.draw(|| wait, bytes) + class.work.draw(|| work, bytes)
        }))
    };
    [Duration::ZERO, class.warm_up.map_or(Duration::ZERO, |warm_up| warm_up.wait)].map(after)
}

fn is_by_sentry(reason: ShedReason) -> bool {
    use Reason::{Batch, Capacity, ClientShare, Deadline, Reserved, Threshold};
    matches!(reason, ShedReason::Gateway(Capacity | Deadline | Reserved | Threshold | Batch | ClientShare))
}

/// Draws from which a class's hazard is made: it is known to 1/√2,000 = 2 % at its mean.
const DRAWS: u64 = 2_000;
/// Progress is rounded to nanoseconds, a few times for each request.
const ROUNDING_S: f64 = 1e-7;
/// Names the forks that unloaded times are drawn from: "calm" in ASCII.
const CALM: u64 = 0x6361_6C6D << 32;
