//! Limiter: permits for a service that is called from one place, for use without anything else of Flashweir.

use crate::grid::time_bin;
use crate::learner::{Learned, Learner, Tick};
use crate::numbers::{LIMIT_MAX, Numbers};
use crate::row::Row;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// A limit on requests in flight that learns from them.
///
/// Times are durations since any fixed moment. Call [`plan`](Self::plan) ten to fifty times a second.
///
/// ```
/// use core::time::Duration;
/// use flashweir_limit::Limiter;
///
/// let mut limiter = Limiter::new(Duration::from_secs(1));
/// let at = Duration::from_millis;
/// // One class for each kind of request, for example a hash of the route.
/// let permit = limiter.try_acquire(7, at(0)).expect("eight may be in flight at first");
/// // … the request is served …
/// permit.complete(&mut limiter, at(30));
/// limiter.plan(at(40));
/// assert_eq!((limiter.in_flight(), limiter.limit()), (0, 8));
/// ```
#[derive(Debug)]
pub struct Limiter {
    learner: Learner,
    target: Duration,
    /// In flight by class and start.
    present: BTreeMap<(u32, Duration), u32>,
    ended: Vec<Row>,
    /// In flight, exempt ones not counted; and these.
    short: u32,
    exempt: u32,
    /// Requests of any class that began no later are exempt.
    released: Option<Duration>,
    /// Since the last plan.
    offered: u32,
    refused: u32,
    failed: u32,
    planned_at: Duration,
    counted_at: Duration,
    /// ∫ n dt and ∫ n² dt since the last plan, seconds.
    request_s: f64,
    squares_s: f64,
}

/// A request in flight. It must be given back.
#[derive(Debug)]
#[must_use = "a permit that is not given back counts as in flight forever"]
pub struct Permit {
    class: u32,
    started: Duration,
}

/// The limit is reached: refuse the request, or queue it and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached;

impl Limiter {
    /// Nothing is known of the service; responses are wanted within `target`.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        Self {
            learner: Learner::new(Numbers::SHIPPED),
            target,
            present: BTreeMap::new(),
            ended: Vec::new(),
            short: 0,
            exempt: 0,
            released: None,
            offered: 0,
            refused: 0,
            failed: 0,
            planned_at: Duration::ZERO,
            counted_at: Duration::ZERO,
            request_s: 0.0,
            squares_s: 0.0,
        }
    }

    /// Admits a request, if there is room. O(log requests in flight).
    ///
    /// # Errors
    /// The limit is reached.
    pub fn try_acquire(&mut self, class: u32, now: Duration) -> Result<Permit, LimitReached> {
        self.advance(now);
        self.offered += 1;
        let learned = self.learner.learned();
        let is_exempt = self.is_exempt(class, now);
        let is_full = match is_exempt {
            true => {
                self.in_flight() >= LIMIT_MAX
                    || learned.exempt_limit.is_some_and(|limit| self.exempt >= limit)
            }
            false => self.short >= learned.limit,
        };
        if is_full {
            self.refused += 1;
            return Err(LimitReached);
        }
        *self.present.entry((class, now)).or_default() += 1;
        if is_exempt {
            self.exempt += 1
        } else {
            self.short += 1
        }
        Ok(Permit { class, started: now })
    }

    /// Learns from what happened since the last call, and sets the limit. O(requests in flight · log).
    pub fn plan(&mut self, now: Duration) -> Learned {
        self.advance(now);
        let mut rows = core::mem::take(&mut self.ended);
        for (&(class, started), &in_flight) in &self.present {
            let bin = time_bin(now.saturating_sub(started).as_secs_f64()) as u8;
            match rows.last_mut() {
                Some(last) if last.in_flight > 0 && (last.class, last.bin) == (class, bin) => {
                    last.in_flight += in_flight
                }
                _ => rows.push(Row { class, bin, in_flight, ..Row::default() }),
            }
        }
        let learned = self.learner.tick(&Tick {
            span_s: now.saturating_sub(self.planned_at).as_secs_f64(),
            target_s: self.target.as_secs_f64(),
            in_flight: if self.request_s > 0.0 { self.squares_s / self.request_s } else { 0.0 },
            exempt: self.exempt,
            rows: &rows,
            is_waiting: self.refused > 0,
            offered: self.offered.into(),
            refused: self.refused.into(),
            failed: self.failed.into(),
        });
        self.planned_at = now;
        (self.offered, self.refused, self.failed) = (0, 0, 0);
        (self.request_s, self.squares_s) = (0.0, 0.0);
        self.release(now, &learned);
        learned
    }

    /// Counts exempt requests: those of exempt classes, and of others those in flight for as long as the plan
    /// says, the oldest first, up to the number that may be exempt.
    fn release(&mut self, now: Duration, learned: &Learned) {
        let all: u32 = self.present.values().sum();
        let after = learned.exempt_after_s.map_or(Duration::MAX, Duration::from_secs_f64);
        let (mut exempt, mut old) = (0, Vec::new());
        for (&(class, started), &count) in &self.present {
            if self.is_exempt(class, started) {
                exempt += count;
            } else if now.saturating_sub(started) > after {
                old.push((started, count));
            }
        }
        old.sort_unstable();
        for (started, count) in old {
            if exempt + count > learned.exempt_limit.unwrap_or(LIMIT_MAX) {
                break;
            }
            exempt += count;
            self.released = Some(started);
        }
        (self.exempt, self.short) = (exempt, all - exempt);
    }

    fn is_exempt(&self, class: u32, started: Duration) -> bool {
        self.learner.is_exempt(class) || self.released.is_some_and(|released| started <= released)
    }

    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.short + self.exempt
    }

    /// Requests in flight at most, exempt ones not counted.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.learner.learned().limit
    }

    /// Evidence, posterior and policy of the service.
    #[must_use]
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    fn advance(&mut self, now: Duration) {
        let span_s = now.saturating_sub(self.counted_at).as_secs_f64();
        self.counted_at = self.counted_at.max(now);
        let in_flight = f64::from(self.short);
        self.request_s += in_flight * span_s;
        self.squares_s += in_flight * in_flight * span_s;
    }

    fn end(&mut self, permit: &Permit, now: Duration, is_completed: bool) {
        self.advance(now);
        let key = (permit.class, permit.started);
        if let Some(count) = self.present.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.present.remove(&key);
            }
        }
        let is_exempt = self.is_exempt(permit.class, permit.started);
        let count = if is_exempt { &mut self.exempt } else { &mut self.short };
        *count = count.saturating_sub(1);
        let bin = time_bin(now.saturating_sub(permit.started).as_secs_f64()) as u8;
        let (completed, left) = (u32::from(is_completed), u32::from(!is_completed));
        // A row beyond the bound says no more than those before it.
        if self.ended.len() < ENDED_MAX {
            self.ended.push(Row { class: permit.class, bin, completed, left, in_flight: 0 });
        }
    }
}

impl Permit {
    /// The response is complete.
    pub fn complete(self, limiter: &mut Limiter, now: Duration) {
        limiter.end(&self, now, true);
    }

    /// The service failed or refused the request.
    pub fn fail(self, limiter: &mut Limiter, now: Duration) {
        limiter.failed += 1;
        limiter.end(&self, now, false);
    }

    /// The request ended for another reason, for example because the client left: that says nothing but that
    /// it took this long.
    pub fn cancel(self, limiter: &mut Limiter, now: Duration) {
        limiter.end(&self, now, false);
    }
}

/// Ends of requests that are remembered between two plans, at most.
const ENDED_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_never_come_back_give_their_places_to_others() {
        let at = Duration::from_millis;
        let mut limiter = Limiter::new(at(1_000));
        let mut polls: Vec<Permit> = (0..8).filter_map(|_| limiter.try_acquire(0, at(0)).ok()).collect();
        assert!(limiter.try_acquire(0, at(1)).is_err());
        (1..=250).for_each(|tick| _ = limiter.plan(at(20 * tick)));
        assert_eq!((polls.len(), limiter.in_flight()), (8, 8));
        let page = limiter.try_acquire(0, at(5_001)).expect("polls are four targets old");
        page.complete(&mut limiter, at(5_011));
        polls.drain(..).for_each(|poll| poll.complete(&mut limiter, at(5_020)));
        limiter.plan(at(5_040));
        assert_eq!((limiter.in_flight(), limiter.short, limiter.exempt), (0, 0, 0));
    }

    #[test]
    fn an_origin_that_hangs_gets_one_more_batch() {
        let at = Duration::from_millis;
        let mut limiter = Limiter::new(at(1_000));
        for tick in 0..1_000 {
            let page = limiter.try_acquire(0, at(20 * tick)).expect("a place");
            page.complete(&mut limiter, at(20 * tick + 10));
            limiter.plan(at(20 * tick + 20));
        }
        let mut permits = Vec::new();
        for tick in 1_000..4_000 {
            permits.extend(limiter.try_acquire(0, at(20 * tick)));
            limiter.plan(at(20 * tick + 20));
        }
        assert!((9..=16).contains(&permits.len()), "{} in flight after a minute", permits.len());
    }
}
