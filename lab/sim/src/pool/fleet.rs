//! The servers of one application: ordered, starting, serving, given back.

use super::scenario::StartUp;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_provisioning::Moments;

/// Servers of one application.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) ready: u32,
    /// Times at which each server that starts will serve, and at which it was ordered.
    starting: Vec<(Instant, Instant)>,
    /// Start-up times since the last report.
    start_ups: Moments,
    /// Server-seconds, from the order of a server until it is given back.
    pub(super) server_s: f64,
    /// Last direction in which the number was changed.
    direction: i32,
    /// Number of times that direction turned.
    pub(super) reversals: u32,
}

impl Fleet {
    pub(super) fn new(ready: u32) -> Self {
        Self {
            ready,
            starting: Vec::new(),
            start_ups: Moments::default(),
            server_s: 0.0,
            direction: 0,
            reversals: 0,
        }
    }

    /// Servers, including those that start.
    pub(super) fn total(&self) -> u32 {
        self.ready + self.starting()
    }

    pub(super) fn starting(&self) -> u32 {
        // Never more than were ordered, a u32.
        self.starting.len() as u32
    }

    /// Start-up times since the last call.
    pub(super) fn take_start_ups(&mut self) -> Moments {
        core::mem::take(&mut self.start_ups)
    }

    /// Orders servers, or gives some back: the last ordered first, then some that serve. True if that changes
    /// anything.
    pub(super) fn set(&mut self, now: Instant, wanted: u32, start_up: &StartUp, rng: &mut Rng) -> bool {
        let total = self.total();
        if wanted == total {
            return false;
        }
        let direction = if wanted > total { 1 } else { -1 };
        self.reversals += u32::from(direction == -self.direction);
        self.direction = direction;
        for _ in total..wanted {
            self.starting.push((now + start_up.draw(rng), now));
        }
        for _ in wanted..total {
            if self.starting.pop().is_none() {
                self.ready -= 1;
            }
        }
        true
    }

    /// The next `tick`, which ends `now`: what has started serves from then on.
    pub(super) fn step(&mut self, now: Instant, tick: Duration) {
        self.server_s += f64::from(self.total()) * tick.as_secs_f64();
        let (start_ups, ready) = (&mut self.start_ups, &mut self.ready);
        self.starting.retain(|&(at, ordered)| {
            let is_up = at <= now;
            if is_up {
                start_ups.push(at.saturating_since(ordered).as_secs_f64());
                *ready += 1;
            }
            !is_up
        });
    }
}
