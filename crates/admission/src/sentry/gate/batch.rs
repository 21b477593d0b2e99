//! Deciding in rounds (Cataclysm §3.2): a class's requests gather for a while, then those of each service
//! time that would be answered in time go, and the others are refused.
//!
//! The test (eq. 4), for β waiting requests of service time S, with n servers and `in flight` requests there:
//! (in flight / n + β / n) · q · S ≤ target − waited. Against the paper, which lets all of β in or none: as
//! many as pass are let in (if `is_whole` is not set); in flight is counted by the gate itself, so it is
//! never stale within a round; the age of the oldest stands for the round's length; q makes a bound on the
//! mean one on what is late. The paper's queue at the origin (Q) is part of what is in flight here. A lane
//! holds requests of like service time, whose mean stands for all. Rounds are at multiples of the class's
//! delay. Once a request was refused, less important ones of the same moment are refused untested. A request
//! that passes but finds no room under the limit waits for the next round.

use super::SentryGate;
use super::answer::{Check, Slot, Turn};
use super::arriving::ArrivingRequest;
use crate::sentry::hold::{End, queue_of};
use crate::sentry::plan::{BatchTest, ClassPlan};
use crate::sentry::request::Position;
use flashweir_core::limits::{CLASSES, CLIENT_LANES};
use flashweir_core::{Duration, Instant, Reason};

/// State of a gate's rounds.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Time of each class's last one.
    last: [Instant; CLASSES],
    open: Option<Round>,
    /// Time at which a class was last refused something, and its rank.
    failed: Option<(Instant, u8)>,
}

/// A round under way: what is still to be done in one lane.
#[derive(Clone, Copy, Debug)]
struct Round {
    class: usize,
    lane: usize,
    admit: u32,
    refuse: u32,
}

impl Rounds {
    /// The first round after the class's last and after `since`.
    pub(super) fn next_after(&self, class: usize, delay: Duration, since: Instant) -> Instant {
        let after = self.last[class].max(since);
        match delay.as_nanos() as u64 {
            0 if self.last[class] < since => since,
            // Put off for want of room, which another gate may give back without a word.
            0 => self.last[class] + PUT_OFF,
            delay => Instant::from_nanos((after.as_nanos() / delay).saturating_add(1).saturating_mul(delay)),
        }
    }
}

impl<T> SentryGate<T> {
    pub(super) fn check_in_batch(
        &mut self,
        now: Instant,
        arriving: &ArrivingRequest,
        test: &BatchTest,
    ) -> Check<Slot> {
        let class_index = usize::from(arriving.request.class);
        let decides_now = arriving.class.delay.is_zero()
            && self.hold.queue_len(queue_of(class_index, Position::Usual)) == 0;
        if decides_now {
            let cost_us = u64::from(arriving.cost_us.max(1));
            if passing(test, &arriving.class, self.in_flight(), Duration::ZERO, 1, cost_us) == 0 {
                self.rounds.failed = Some((now, arriving.class.rank));
                return Check::Shed(self.shed(Reason::Batch, arriving));
            }
            if self.take(now, arriving.class.limit) {
                return Check::Pass(Slot { is_guaranteed: false, is_long: false });
            }
        }
        Check::Wait
    }

    /// The next one of the rounds that are due. Each call lets one go or refuses one.
    pub(super) fn next_in_round(&mut self, now: Instant, test: &BatchTest) -> Option<Turn<T>> {
        // At most every lane of every class is opened once.
        for _ in 0..CLASSES * CLIENT_LANES {
            let Some(round) = self.rounds.open else {
                self.open_round(now, test)?;
                continue;
            };
            if round.admit > 0 {
                if self.hold.lane(queue_of(round.class, Position::Usual), round.lane).len == 0 {
                    // They left, or have waited too long.
                    self.rounds.open = Some(Round { admit: 0, refuse: 0, ..round });
                    continue;
                }
                if !self.take(now, self.plan.classes[round.class].limit) {
                    self.put_off(now, round.class);
                    return None;
                }
                self.rounds.open = Some(Round { admit: round.admit - 1, ..round });
                let dequeued = self.hold.take_from_lane(
                    queue_of(round.class, Position::Usual),
                    round.lane,
                    End::Oldest,
                )?;
                return Some(self.go(dequeued));
            } else if round.refuse > 0 {
                self.rounds.open = Some(Round { refuse: round.refuse - 1, ..round });
                if let Some(dequeued) =
                    self.hold.take_from_lane(queue_of(round.class, Position::Usual), round.lane, End::Oldest)
                {
                    return Some(self.refuse(dequeued, Reason::Batch));
                }
            } else {
                self.rounds.open = self.open_lane(now, test, round.class, round.lane + 1);
            }
        }
        None
    }

    /// The most important class with a round that is due.
    fn open_round(&mut self, now: Instant, test: &BatchTest) -> Option<()> {
        let is_due = |class: usize| {
            let since = self.hold.oldest_since(queue_of(class, Position::Usual));
            since.is_some_and(|since| {
                self.rounds.next_after(class, self.plan.classes[class].delay, since) <= now
            })
        };
        let due = (0..self.plan.classes.len()).filter(|&class| is_due(class));
        let class = due.min_by_key(|&class| self.plan.classes[class].rank)?;
        self.rounds.last[class] = now;
        self.rounds.open = self.open_lane(now, test, class, 0);
        Some(())
    }

    /// Tests the next lane in which a request waits, from `from` on.
    fn open_lane(&mut self, now: Instant, test: &BatchTest, class: usize, from: usize) -> Option<Round> {
        let lane = self.hold.lanes_in_use(queue_of(class, Position::Usual)).find(|&lane| lane >= from)?;
        let plan = &self.plan.classes[class];
        let waiting = self.hold.lane(queue_of(class, Position::Usual), lane);
        let is_after_failure = self.rounds.failed.is_some_and(|(at, rank)| at == now && rank < plan.rank);
        let admit = if is_after_failure {
            0
        } else {
            let waited = now.saturating_since(waiting.oldest_since);
            passing(test, plan, self.in_flight(), waited, waiting.len, waiting.cost_us)
        };
        if admit < waiting.len {
            self.rounds.failed = Some((now, plan.rank));
        }
        Some(Round { class, lane, admit, refuse: waiting.len - admit })
    }

    /// There is no room: requests that passed, and less important ones, wait for the next round.
    fn put_off(&mut self, now: Instant, class: usize) {
        self.rounds.open = None;
        let rank = self.plan.classes[class].rank;
        for (other, plan) in self.plan.classes.iter().enumerate() {
            if plan.rank >= rank {
                self.rounds.last[other] = now;
            }
        }
    }
}

/// Requests, of `len` that cost `cost_us` together, that may go while `in_flight` are there.
fn passing(
    test: &BatchTest,
    class: &ClassPlan,
    in_flight: u32,
    waited: Duration,
    len: u32,
    cost_us: u64,
) -> u32 {
    let left_us = class.target.saturating_sub(waited).as_micros();
    let each_us = (cost_us / u64::from(len.max(1))).max(1);
    let late_us_milli = u128::from(each_us) * u128::from(test.quantile_milli.max(1));
    // Thousandths of servers times microseconds, on both sides.
    let available = u128::from(test.servers_milli) * left_us * 1_000;
    if test.is_whole {
        let servers_milli = u128::from(test.servers_milli.max(1));
        let batch_milli = u128::from(len) * 1_000;
        let each_milli = batch_milli.div_ceil(servers_milli) * servers_milli;
        let needed = (u128::from(in_flight) * 1_000 + each_milli) * late_us_milli;
        return if needed <= available { len } else { 0 };
    }
    let at_once = available / (1_000 * late_us_milli);
    (at_once.saturating_sub(in_flight.into())).min(len.into()) as u32
}

/// A class without a delay that finds no room looks again so much later.
const PUT_OFF: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Policy, SentryPlanner};
    use alloc::sync::Arc;

    /// Requests of 10 ms that pass, by how many wait, how many are in flight and how long they have waited.
    fn pass(servers_milli: u64, is_whole: bool, in_flight: u32, waited_ms: u64, len: u32) -> u32 {
        let planner = SentryPlanner::new(Arc::new(Policy::single(Duration::from_millis(100))));
        let test = BatchTest { servers_milli, quantile_milli: 2_000, is_whole };
        let waited = Duration::from_millis(waited_ms);
        passing(&test, &planner.current().classes[0], in_flight, waited, len, 10_000 * u64::from(len))
    }

    #[test]
    fn as_many_pass_as_would_be_answered_in_time() {
        // 100 ms are five late responses of 20 ms: two servers take ten requests.
        assert_eq!(
            [pass(2_000, false, 0, 0, 50), pass(2_000, false, 7, 0, 50), pass(2_000, false, 10, 0, 50)],
            [10, 3, 0]
        );
        assert_eq!(
            [pass(2_000, false, 99, 0, 50), pass(2_000, false, 0, 50, 50), pass(2_000, false, 0, 0, 3)],
            [0, 5, 3]
        );
        assert_eq!(
            [pass(2_000, true, 0, 0, 10), pass(2_000, true, 0, 0, 11), pass(2_000, true, 1, 0, 9)],
            [10, 0, 0]
        );
        assert_eq!([pass(1_500, false, 0, 0, 50), pass(1_500, true, 0, 0, 7)], [7, 7]);
    }

    #[test]
    fn no_servers_no_time_and_nobody_let_nobody_in() {
        for is_whole in [false, true] {
            assert_eq!(
                [
                    pass(0, is_whole, 0, 0, 5),
                    pass(2_000, is_whole, 0, 100, 5),
                    pass(2_000, is_whole, 0, 500, 5)
                ],
                [0; 3]
            );
            assert_eq!(pass(2_000, is_whole, 0, 0, 0), 0);
        }
        let planner = SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))));
        let test = BatchTest { servers_milli: 1_000, quantile_milli: 1_000, is_whole: false };
        let unknown = passing(&test, &planner.current().classes[0], 0, Duration::ZERO, 7, 0);
        assert_eq!(unknown, 7, "whose service time is unknown");
        let endless = passing(&test, &planner.current().classes[0], 0, Duration::ZERO, 7, u64::MAX / 2);
        assert_eq!(endless, 0);
    }

    #[test]
    fn rounds_are_at_multiples_of_the_delay() {
        let (mut rounds, at) = (Rounds::default(), Instant::from_millis);
        let delay = Duration::from_millis(50);
        assert_eq!(
            [at(0), at(49), at(50)].map(|since| rounds.next_after(3, delay, since)),
            [at(50), at(50), at(100)]
        );
        rounds.last[3] = at(250);
        assert_eq!(rounds.next_after(3, delay, at(210)), at(300));
        assert_eq!(rounds.next_after(3, Duration::ZERO, at(210)), at(250) + PUT_OFF, "looked at and put off");
        assert_eq!(rounds.next_after(3, Duration::ZERO, at(260)), at(260));
        assert_eq!(rounds.next_after(4, delay, Instant::MAX), Instant::MAX);
    }
}
