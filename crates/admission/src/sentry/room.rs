//! Room of a queue: that of a burst, or, once the queue stands, what keeps the origin busy.
//!
//! ```text
//! burst room      what the origin answers within the target (`classes`)
//! standing room   length = max(K, 10 ms × μ)    μ the origin's capacity, requests a second
//!                 K      = max(12, ln(.001) / ln(1 − r))    r the share of the class's requests that is refused
//!                 wait   = max(4 / μ, 10 ms, min(K / λ, w))    λ what the class gets of μ; newest first
//!                 w      = half the target where less important classes are offered anything, an eighth where none are
//! stands from     a refusal after it was non-empty for eight targets, where r is 0.15 or more
//! stands until    requests that find a free slot at once outnumber refusals by 48, or none is refused for eight targets
//! ```
//!
//! A queue evens out bursts. One that has not been empty for eight targets while requests are refused evens
//! out nothing: each admitted request waits for as long as the queue is, and as many are served as with a
//! short one (CoDel, Nichols and Jacobson 2012, RFC 8289: a standing queue). Against CoDel, which drops one
//! request at a time until the delay falls: the excess of a crowd is several times the capacity, so the queue
//! is cut to its standing room at once.
//!
//! Why these numbers. A slot that comes back must find a request: with arrivals at 1.5 times the capacity,
//! four service times without one come to pass once in 400. K counts where several classes wait: while the
//! queue of an important one is empty, less important requests are served. Offered ρ times what is served, a
//! queue of K places is empty for about ρ⁻ᴷ of the time, ρ = 1/(1 − r); K keeps that below 0.1 %, and w lets
//! the places of a slow origin fill. The newest goes first, since the oldest of a queue that is always full
//! has waited longest. 10 ms is what a busy gateway may take to look at its timers. Eight targets: what a
//! greedy client or a crawler does until it is found out is a burst.
//!
//! Why not until the queue is empty: a short queue is, by chance, several times a second in any crowd of a
//! fast service. A free slot that a request finds at once is one that the longer queue would have filled with
//! a refused one: where there are more of these than refusals, it would be empty at times. The two are summed
//! (a sequential test, CUSUM), so that chance ends it neither for slow services, of which few requests arrive
//! in a target, nor keeps it long for fast ones.
//!
//! Drawback: a crowd that ends leaves no backlog, so the origin has less to do in the second after.
//!
//! Cold start: while nothing is known of the origin both rooms are the same. Cost: one load for each
//! decision, and one addition to a shared counter for each refusal and, while the queue stands, for each
//! request that finds a free slot. Where two gates change the state at once, the first one counts.

use super::plan::ClassPlan;
use crate::sync::{AtomicU32, AtomicU64, Ordering::SeqCst};
use flashweir_core::{Duration, Instant};

/// Targets in which a queue is not empty before it stands, and in which no request is refused before it
/// stands no more. With fewer, people who wait while a greedy client or a crawler is being found out are
/// refused for its sake: with two, 0.950 were answered in time beside a greedy client, and 0.969 with four;
/// beside a crawler 0.962 with four.
const TARGETS: u32 = 8;
/// Free slots by which a standing queue ends. At 1.5 times the capacity one in twenty requests finds one, and
/// one in three is refused; with 16 a crowd of 1,500 requests a second had its long queue back once in a
/// minute.
const SLOTS: u32 = 48;
/// Part of the time for which a standing queue may be empty.
const EMPTY_SHARE: f64 = 0.001;
/// Places in a standing queue, at least.
const PLACES_MIN: f64 = 12.0;
/// Service times for which a request may wait in a standing queue, at least.
const SERVICES_MIN: f64 = 4.0;
/// Shortest wait for which a standing queue has room.
const WAIT_MIN_S: f64 = 0.01;
/// Longest wait for which a standing queue has room: what is known of a capacity may be nothing.
const LONGEST_S: f64 = 3_600.0;

/// Length and time of the standing room of a class that gets `served_rps` of an origin of this capacity, and
/// of which this share is refused. `wait_max_s` is how long its requests may wait so that it keeps its
/// places.
pub(super) fn standing_room(
    capacity_rps: f64,
    served_rps: f64,
    refused_share: f64,
    wait_max_s: f64,
) -> (u32, Duration) {
    let places = libm::log(EMPTY_SHARE) / libm::log(1.0 - refused_share.clamp(1e-6, 1.0 - 1e-6));
    let places = places.max(PLACES_MIN);
    let len = libm::ceil(places.max(WAIT_MIN_S * capacity_rps));
    let s_of = |rps: f64| 1.0 / rps.max(f64::MIN_POSITIVE);
    let fill_s = (places * s_of(served_rps)).min(wait_max_s);
    let wait_s = fill_s.max(SERVICES_MIN * s_of(capacity_rps)).max(WAIT_MIN_S);
    // In use both are bounded by the burst room.
    (len.min(f64::from(u32::MAX)) as u32, Duration::from_secs_f64(wait_s.min(LONGEST_S)))
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Requests over all gates.
    pub(super) len: u32,
    /// Longest wait.
    pub(super) wait: Duration,
    /// True if it is the standing room, whose newest request goes first.
    pub(super) is_standing: bool,
}

impl Room {
    pub(super) fn of(class: &ClassPlan, stands: bool) -> Self {
        let ClassPlan { hold_len, hold_for, standing_len, standing_for, .. } = *class;
        match stands && standing_for < hold_for {
            true => Self { len: hold_len.min(standing_len), wait: standing_for, is_standing: true },
            false => Self { len: hold_len, wait: hold_for, is_standing: false },
        }
    }
}

/// State of a queue, over all gates, that decides if it stands.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// Nanoseconds times two: since when the queue is not empty, or, while it stands (the lowest bit is set),
    /// its last refusal.
    since: AtomicU64,
    /// While the queue stands: free slots that requests must find, one more than refusals, until it ends; at
    /// most [`SLOTS`].
    left: AtomicU32,
}

impl QueueState {
    /// Returns true if the queue stands.
    pub(super) fn stands(&self) -> bool {
        self.since.load(SeqCst) & STANDS != 0
    }

    /// A request is to wait. Whether the queue stands for it.
    pub(super) fn arrived(&self, now: Instant, target: Duration) -> bool {
        let since = self.since.load(SeqCst);
        let stands = since & STANDS != 0;
        if stands && age(now, since) >= target * TARGETS {
            self.set(since, now, false);
            return false;
        }
        stands
    }

    /// A request waits in a queue that was empty.
    pub(super) fn filled(&self, now: Instant) {
        let since = self.since.load(SeqCst);
        if since & STANDS == 0 {
            self.set(since, now, false);
        }
    }

    /// A request found a free slot at once.
    pub(super) fn passed(&self, now: Instant) {
        let since = self.since.load(SeqCst);
        if since & STANDS != 0 && self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err()
        {
            self.set(since, now, false);
        }
    }

    /// A request was refused, at once or after it waited, because the queue has no room for it.
    pub(super) fn refused(&self, now: Instant, target: Duration) {
        let since = self.since.load(SeqCst);
        if since & STANDS != 0 {
            // At SLOTS already where it fails.
            let _full = self.left.fetch_update(SeqCst, SeqCst, |left| (left < SLOTS).then_some(left + 1));
            self.set(since, now, true);
        } else if age(now, since) >= target * TARGETS {
            self.left.store(SLOTS, SeqCst);
            self.set(since, now, true);
        }
    }

    /// Another gate may have changed it meanwhile: that counts.
    fn set(&self, before: u64, now: Instant, stands: bool) {
        let after = now.as_nanos() << 1 | u64::from(stands);
        let _other = self.since.fetch_update(SeqCst, SeqCst, |found| (found == before).then_some(after));
    }
}

fn age(now: Instant, since: u64) -> Duration {
    now.saturating_since(Instant::from_nanos(since >> 1))
}

const STANDS: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(10_000 + ms)
    }

    #[test]
    fn the_standing_room_is_twelve_places_and_ten_milliseconds_at_least() {
        let room = |capacity_rps| {
            let (len, wait) = standing_room(capacity_rps, capacity_rps, 0.67, 0.125);
            (len, wait.as_millis())
        };
        assert_eq!(room(1_000.0), (12, 12));
        assert_eq!(room(200.0), (12, 60));
        // The longest wait that the class may have; and four service times, where these are longer.
        assert_eq!(room(50.0), (12, 125));
        assert_eq!(room(20.0), (12, 200));
        assert_eq!(room(100_000.0), (1_000, 10));
        assert_eq!(room(0.0), (12, LONGEST_S as u128 * 1_000));
        // A class that gets a tenth of it, and may wait to keep its places.
        assert_eq!(standing_room(1_000.0, 100.0, 0.67, 0.5), (12, Duration::from_millis(120)));
        assert_eq!(standing_room(20.0, 20.0, 0.67, 0.5), (12, Duration::from_millis(500)));
        // The smaller the share that is refused, the more often a short queue would be empty.
        let len = |refused_share| standing_room(200.0, 200.0, refused_share, 0.125).0;
        assert_eq!([len(0.33), len(0.2), len(0.05), len(1.0)], [18, 31, 135, 12]);
        assert!(len(0.0) > 1_000_000);
    }

    #[test]
    fn a_queue_stands_once_a_request_is_refused_after_eight_targets() {
        let queue_state = QueueState::default();
        queue_state.filled(at(0));
        queue_state.refused(at(7_999), TARGET);
        assert!(!queue_state.arrived(at(12_000), TARGET), "no request is refused any more");
        queue_state.refused(at(8_000), TARGET);
        assert!(queue_state.arrived(at(15_999), TARGET));
        queue_state.refused(at(15_999), TARGET);
        assert!(queue_state.arrived(at(23_998), TARGET));
        assert!(!queue_state.arrived(at(23_999), TARGET), "nothing was refused for eight targets");
    }

    #[test]
    fn a_queue_that_was_empty_begins_again() {
        let queue_state = QueueState::default();
        queue_state.filled(at(0));
        queue_state.refused(at(500), TARGET);
        queue_state.filled(at(900));
        queue_state.refused(at(8_800), TARGET);
        assert!(!queue_state.stands());
        queue_state.refused(at(8_900), TARGET);
        assert!(queue_state.stands());
    }

    #[test]
    fn a_standing_queue_ends_when_free_slots_outnumber_refusals() {
        let queue_state = QueueState::default();
        queue_state.filled(at(0));
        queue_state.refused(at(8_000), TARGET);
        // Empty for a moment: it stands.
        queue_state.filled(at(8_001));
        (0..SLOTS).for_each(|_| queue_state.passed(at(8_002)));
        queue_state.refused(at(8_003), TARGET);
        queue_state.passed(at(8_004));
        assert!(queue_state.arrived(at(8_004), TARGET));
        queue_state.passed(at(8_005));
        assert!(!queue_state.arrived(at(8_005), TARGET));
        // And may stand again after eight targets.
        queue_state.refused(at(16_004), TARGET);
        assert!(!queue_state.stands());
        queue_state.refused(at(16_005), TARGET);
        assert!(queue_state.stands());
    }
}
