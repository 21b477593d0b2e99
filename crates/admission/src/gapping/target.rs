//! One upstream as its sender sees it: the restriction in force, and the requests that wait for it.

use super::queue::{Queue, Waiting};
use super::rule::{Restriction, Rule, Spacing};
use flashweir_core::{Duration, Instant, Rng};

/// Spacing of requests to one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Method by which a restriction is kept. A rate by default.
    pub rule: Rule,
    /// Requests that may wait. 32 by default: with more, memory is used for requests that are refused in the
    /// end, because the waiting time is shorter; 0 refuses at once what does not conform, as the paper does.
    pub queue_max: usize,
    /// Maximum wait of a request. A quarter of a second by default: see the module.
    pub wait_max: Duration,
    /// Under a rate, what is due in this time may go at once, two requests at least. None by default; of use
    /// where requests cannot wait and come in groups.
    pub burst: Duration,
}

/// Decision on a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// Send it.
    Send(T),
    /// It waits; [`GappedTarget::next`] will say. Another one may have to go for it.
    Queued(Option<T>),
    /// Refuse it.
    Refuse(T, Reason),
}

/// Decision on a request that waited.
#[derive(Debug, PartialEq, Eq)]
pub enum Released<T> {
    /// Send it.
    Send(T),
    /// Its time is over.
    Refuse(T),
}

/// Reason for a refusal at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It could not go before its time would be over.
    TooLate,
    /// More important requests fill the queue, or there is none.
    NoRoom,
    /// By chance: the rule refuses a percentage.
    Percentage,
}

/// Outcomes of the requests to one upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that arrived (offered).
    pub offered: u64,
    /// Requests that were sent, after waiting or at once.
    pub sent: u64,
    /// Requests that were refused here (shed), after waiting or at once.
    pub refused: u64,
    /// Requests that their callers abandoned while they waited.
    pub withdrawn: u64,
}

/// The sender's side of one upstream: spaces the requests to it. `T` is what the shell keeps of a request
/// that waits.
///
/// ```
/// use flashweir_admission::gapping::{Decision, GappedTarget, Released, Restriction, Settings};
/// use flashweir_core::{Instant, Rate, Rng};
/// let mut target = GappedTarget::new(Settings::default(), Rng::new(1));
/// let restriction = Restriction { from_rank: 1, severity: 1, rate: Rate::from_per_second(10.0) };
/// let now = Instant::from_secs(1);
/// target.restrict(now, Some(restriction));
/// // A burst of two, then one each 100 ms; rank 0 is not restricted.
/// assert_eq!(["a", "b"].map(|it| target.arrive(now, 1, it)), [Decision::Send("a"), Decision::Send("b")]);
/// assert_eq!(target.arrive(now, 1, "c"), Decision::Queued(None));
/// assert_eq!(target.arrive(now, 0, "d"), Decision::Send("d"));
/// let wake = target.next_wake(now).expect("one waits");
/// assert_eq!((wake, target.next(wake)), (Instant::from_millis(1_100), Some(Released::Send("c"))));
/// ```
#[derive(Debug)]
pub struct GappedTarget<T> {
    settings: Settings,
    restriction: Option<Restriction>,
    spacing: Spacing,
    queue: Queue<T>,
    counts: Counts,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            queue_max: 32,
            wait_max: Duration::from_millis(250),
            burst: Duration::ZERO,
        }
    }
}

impl<T> GappedTarget<T> {
    /// Without restriction. `random` draws for a percentage.
    #[must_use]
    pub fn new(settings: Settings, random: Rng) -> Self {
        let (spacing, queue) =
            (Spacing::new(settings.rule, settings.burst, random), Queue::new(settings.queue_max));
        Self { settings, restriction: None, spacing, queue, counts: Counts::default() }
    }

    /// Sets the restriction of the upstream from now on; none lets everything go. [`next`](Self::next) is to
    /// be asked afterwards.
    pub fn restrict(&mut self, now: Instant, restriction: Option<Restriction>) {
        if let Some(restriction) = &restriction {
            self.spacing.restrict(now, restriction);
        }
        self.restriction = restriction;
    }

    /// Returns true if a request of this rank would be sent at once if it arrived now. Nothing is taken or
    /// counted.
    pub fn would_send(&mut self, now: Instant, rank: u8) -> bool {
        !self.is_restricted(rank) || self.queue.ahead_of(rank) == 0 && self.spacing.has_room(now)
    }

    /// A request arrives. O([`Settings::queue_max`]) for one that waits.
    pub fn arrive(&mut self, now: Instant, rank: u8, kept: T) -> Decision<T> {
        self.arrive_before(now, rank, Instant::MAX, kept)
    }

    /// The same for a request that is of no use any more from `too_late_at` on: it waits no longer than that.
    pub fn arrive_before(&mut self, now: Instant, rank: u8, too_late_at: Instant, kept: T) -> Decision<T> {
        self.counts.offered += 1;
        self.spacing.observe(now);
        if !self.is_restricted(rank) {
            self.counts.sent += 1;
            return Decision::Send(kept);
        }
        let ahead = self.queue.ahead_of(rank);
        if ahead == 0 && self.spacing.admit(now) {
            self.counts.sent += 1;
            return Decision::Send(kept);
        }
        let leaves_at = too_late_at.min(now + self.settings.wait_max);
        let reason = if !self.spacing.has_order() {
            Some(Reason::Percentage)
        } else if self.settings.queue_max == 0 {
            Some(Reason::NoRoom)
        } else if self.spacing.wait(now, ahead) > leaves_at.saturating_since(now) {
            Some(Reason::TooLate)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.counts.refused += 1;
            return Decision::Refuse(kept, reason);
        }
        self.enqueue(Waiting { rank, leaves_at, kept })
    }

    /// Returns true if a request of this rank would be sent at once if it arrived now. Takes nothing.
    pub fn is_open(&mut self, now: Instant, rank: u8) -> bool {
        !self.is_restricted(rank) || (self.queue.ahead_of(rank) == 0 && self.spacing.ready_at(now) <= now)
    }

    /// A request whose earlier calls were sent already: it goes, and what it takes is taken from those that
    /// come.
    pub fn arrive_continued(&mut self, now: Instant) {
        self.counts.offered += 1;
        self.counts.sent += 1;
        self.spacing.send_on_credit(now);
    }

    /// The next request that waits no longer, if there is one; to be asked until there is none.
    pub fn next(&mut self, now: Instant) -> Option<Released<T>> {
        if let Some(late) = self.queue.pop_late(now) {
            self.counts.refused += 1;
            return Some(Released::Refuse(late.kept));
        }
        let rank = self.queue.first_rank()?;
        if self.is_restricted(rank) && !self.spacing.admit(now) {
            return None;
        }
        self.counts.sent += 1;
        self.queue.pop().map(|waiting| Released::Send(waiting.kept))
    }

    /// Time at which [`next`](Self::next) is to be asked even if nothing else happens; none while no request
    /// waits.
    pub fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        let late_at = self.queue.next_late_at()?;
        Some(self.spacing.ready_at(now).min(late_at))
    }

    /// Takes requests whose callers have given up out of the queue, so that they take no token.
    /// O([`Settings::queue_max`]).
    pub fn withdraw(&mut self, is_gone: impl Fn(&T) -> bool) {
        self.counts.withdrawn += self.queue.remove_where(is_gone) as u64;
    }

    /// Restriction in force.
    #[must_use]
    pub fn restriction(&self) -> Option<&Restriction> {
        self.restriction.as_ref()
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Outcomes of all requests so far; requests that are not sent, refused or withdrawn wait.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn enqueue(&mut self, waiting: Waiting<T>) -> Decision<T> {
        let is_last = self.queue.ahead_of(waiting.rank) == self.queue.len();
        match self.queue.push(waiting) {
            None => Decision::Queued(None),
            Some(displaced) => {
                self.counts.refused += 1;
                match is_last {
                    true => Decision::Refuse(displaced.kept, Reason::NoRoom),
                    false => Decision::Queued(Some(displaced.kept)),
                }
            }
        }
    }

    fn is_restricted(&self, rank: u8) -> bool {
        self.restriction.is_some_and(|restriction| rank >= restriction.from_rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use flashweir_core::{Rate, Rng};
    use proptest::prelude::*;

    fn at_rate(rate: f64) -> Option<Restriction> {
        Some(Restriction { from_rank: 1, severity: 1, rate: Rate::from_per_second(rate) })
    }

    fn target(rate: f64, queue_max: usize) -> GappedTarget<u32> {
        let mut target = GappedTarget::new(Settings { queue_max, ..Settings::default() }, Rng::new(1));
        target.restrict(Instant::ZERO, at_rate(rate));
        target
    }

    #[test]
    fn more_important_requests_go_first_and_push_out_the_least_important() {
        let mut target = target(10.0, 2);
        let now = Instant::ZERO;
        let decisions: Vec<_> = [(2, 0), (2, 1), (3, 2), (2, 3), (1, 4), (3, 5)]
            .map(|(rank, number)| target.arrive(now, rank, number))
            .into();
        assert_eq!(decisions[..2], [Decision::Send(0), Decision::Send(1)]);
        assert_eq!(
            decisions[2..5],
            [Decision::Queued(None), Decision::Queued(None), Decision::Queued(Some(2))]
        );
        // Two before it: it could not go within a quarter of a second.
        assert_eq!(decisions[5], Decision::Refuse(5, Reason::TooLate));
        let wake = target.next_wake(now).unwrap();
        assert_eq!((wake, target.next(wake)), (Instant::from_millis(100), Some(Released::Send(4))));
        assert_eq!((target.next(wake), target.waiting()), (None, 1));
    }

    #[test]
    fn an_open_target_sends_and_one_without_tokens_is_not_open() {
        let mut target = target(10.0, 8);
        let now = Instant::ZERO;
        assert!(target.is_open(now, 1) && target.is_open(now, 1), "asking takes nothing");
        assert_eq!([0, 1].map(|it| target.arrive(now, 1, it)), [Decision::Send(0), Decision::Send(1)]);
        assert!(!target.is_open(now, 1) && target.is_open(now, 0));
        assert!(target.is_open(Instant::from_millis(100), 1));
    }

    #[test]
    fn a_request_waits_no_longer_than_it_may() {
        let mut target = target(4.0, 8);
        let numbers = [0, 1, 2].map(|number| target.arrive(Instant::ZERO, 1, number));
        assert_eq!(numbers[2], Decision::Queued(None));
        target.restrict(Instant::ZERO, at_rate(0.5));
        assert_eq!(target.next(Instant::from_millis(249)), None);
        assert_eq!(target.next_wake(Instant::from_millis(249)), Some(Instant::from_millis(250)));
        assert_eq!(target.next(Instant::from_millis(250)), Some(Released::Refuse(2)));
        assert_eq!((target.next_wake(Instant::from_millis(250)), target.counts().refused), (None, 1));
    }

    #[test]
    fn a_request_waits_no_longer_than_its_answer_is_of_use() {
        let mut target = target(10.0, 8);
        let at = Instant::from_millis;
        let _ = [0, 1].map(|number| target.arrive(at(0), 1, number));
        assert_eq!(target.arrive_before(at(0), 1, at(99), 2), Decision::Refuse(2, Reason::TooLate));
        assert_eq!(target.arrive_before(at(0), 1, at(120), 3), Decision::Queued(None));
        assert_eq!(target.arrive_before(at(0), 0, at(0), 4), Decision::Send(4), "it need not wait");
        target.restrict(at(50), at_rate(1.0));
        assert_eq!((target.next(at(119)), target.next_wake(at(119))), (None, Some(at(120))));
        assert_eq!(target.next(at(120)), Some(Released::Refuse(3)));
    }

    #[test]
    fn requests_that_gave_up_take_no_token() {
        let mut target = target(10.0, 8);
        let now = Instant::ZERO;
        let _ = [0, 1, 2, 3].map(|number| target.arrive(now, 1, number));
        target.withdraw(|&number| number == 2);
        assert_eq!((target.waiting(), target.counts().withdrawn), (1, 1));
        assert_eq!(target.next(Instant::from_millis(100)), Some(Released::Send(3)));
    }

    #[test]
    fn a_restriction_that_ends_lets_all_go() {
        let mut target = target(10.0, 8);
        for number in 0..4 {
            let _ = target.arrive(Instant::ZERO, 1, number);
        }
        target.restrict(Instant::ZERO, None);
        assert_eq!([(), ()].map(|()| target.next(Instant::ZERO)), [2, 3].map(|it| Some(Released::Send(it))));
        assert_eq!(target.arrive(Instant::ZERO, 9, 9), Decision::Send(9));
    }

    /// Goal: what has begun goes on, at the expense of what has not. Method: of 10 a second, each request
    /// that goes has two more calls.
    #[test]
    fn continued_requests_go_and_new_ones_pay_for_them() {
        let mut target = target(30.0, 0);
        let (mut begun, mut calls) = (0, Vec::new());
        for tick in 0..10_000u64 {
            let now = Instant::from_millis(tick);
            calls.retain(|&at| {
                at != tick || {
                    target.arrive_continued(now);
                    false
                }
            });
            if tick % 10 == 0 && matches!(target.arrive(now, 1, 0), Decision::Send(_)) {
                begun += 1;
                calls.extend([tick + 20, tick + 40]);
            }
        }
        assert!((99..=103).contains(&begun), "{begun} in ten seconds");
    }

    proptest! {
        /// No request is lost, and over any interval no more than the rate and the burst go.
        #[test]
        fn each_request_is_sent_refused_or_waits(
            traffic in proptest::collection::vec((0u64..60, 1u8..4), 1..200), rate in 1u64..40, queue_max in 0usize..6,
        ) {
            let mut target = target(rate as f64, queue_max);
            let (mut now_ms, mut sent, mut refused) = (0u64, Vec::new(), 0u64);
            for (gap_ms, rank) in traffic {
                let until = now_ms + gap_ms;
                while let Some(wake) = target.next_wake(Instant::from_millis(now_ms)).filter(|wake| *wake <= Instant::from_millis(until)) {
                    match target.next(wake) {
                        Some(Released::Send(_)) => sent.push(wake.as_nanos()),
                        Some(Released::Refuse(_)) => refused += 1,
                        None => prop_assert!(false, "a wake for nothing"),
                    }
                }
                now_ms = until;
                match target.arrive(Instant::from_millis(now_ms), rank, 0) {
                    Decision::Send(_) => sent.push(now_ms * 1_000_000),
                    Decision::Queued(displaced) => refused += u64::from(displaced.is_some()),
                    Decision::Refuse(..) => refused += 1,
                }
                prop_assert!(target.waiting() <= queue_max);
            }
            let counts = target.counts();
            prop_assert_eq!((counts.sent, counts.refused), (sent.len() as u64, refused));
            prop_assert_eq!(counts.offered, counts.sent + counts.refused + target.waiting() as u64);
            for (from, start) in sent.iter().enumerate() {
                for (to, end) in sent.iter().enumerate().skip(from) {
                    let allowed = 2.0 + rate as f64 * (end - start) as f64 / 1e9;
                    prop_assert!((to - from + 1) as f64 <= allowed + 1e-6);
                }
            }
        }
    }
}
