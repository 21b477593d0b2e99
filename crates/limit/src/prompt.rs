//! Prompt classes: their requests complete as soon as usual while those of another class are late and fill
//! the limit.
//!
//! Late requests wait for something that prompt ones do not need, another service or a lock for example; the
//! servers are not short, or prompt ones would be late, too. If both shared the places, late requests would
//! take all of them. So prompt classes hold none, as long classes do, and the limit is that of the others. A
//! request is late if it takes four times as long as nineteen in twenty did before any change: Λ(t/4) ≥ 3.
//! With L of the last N requests late, D completions and E expected ones, all over 16 requests or two
//! seconds:
//!
//! * *late* from L > N/2 with N ≥ 4 to L ≤ N/4 with N ≥ 4, or until no request comes;
//! * *prompt* from E < 1.19 D with D ≥ 4 to E ≥ 2 D + 1.5, or until no class is late. A class becomes prompt while
//!   requests are kept out and late ones hold half of the places, and if its median time is below half of the time
//!   that late ones have been in flight: a cause common to both those would show in it.
//!
//! Bound on prompt requests in flight: the limit when the first class became prompt, no less than at a start,
//! and √2 times as many after as many completions at or near it.
//! Cost: O(classes) for each tick.

use crate::class::Class;
use crate::evidence::Evidence;
use crate::numbers::{LIMIT_MAX, Numbers};

/// Bound on prompt requests in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prompt {
    /// 0 where no class is prompt.
    limit: f64,
    /// Completions of prompt requests at or near the bound since it was set.
    shown: f64,
}

impl Prompt {
    /// Prompt requests in flight at most; `None` where no class is prompt.
    pub(crate) fn limit(&self) -> Option<u32> {
        (self.limit > 0.0).then_some(self.limit as u32)
    }

    /// Finds prompt classes after a tick; `limit` is the one in force, and `is_bound` says whether it kept
    /// requests out. Returns whether they changed.
    pub(crate) fn find(&mut self, evidence: &mut Evidence, limit: u32, is_bound: bool) -> bool {
        let (first, numbers) = (evidence.first(), evidence.numbers);
        let classes = &mut evidence.classes;
        for class in &mut *classes {
            let is_known = class.calm >= first && !class.is_long;
            class.is_late =
                is_known && class.recent.is_late(class.is_late, class.in_flight > 0.0 || is_bound);
        }
        let in_flight = |counts: fn(&Class) -> bool| -> f32 {
            classes.iter().filter(|class| counts(class)).map(|class| class.in_flight).sum()
        };
        let late = in_flight(|class| class.is_late);
        let may_begin = is_bound && late >= 0.5 * in_flight(Class::holds_place);
        let (count, ages_s) = classes.iter().filter(|class| class.is_late).fold((0.0, 0.0), |sum, class| {
            (sum.0 + class.recent.in_flight_late, sum.1 + class.recent.ages_late_s)
        });
        // What keeps late requests for as long would be seen in one that takes half of it at most.
        let median_max_s = 0.5 * ages_s / f64::max(count, 1.0);
        let is_any_late = classes.iter().any(|class| class.is_late);
        let mut is_changed = false;
        let (mut in_flight, mut completed) = (None, 0.0);
        for class in classes {
            let is_prompt = is_any_late
                && !class.is_late
                && !class.is_long
                && match class.is_prompt {
                    true => class.recent.is_prompt_still(),
                    false => {
                        may_begin
                            && class.calm >= first
                            && class.recent.is_prompt()
                            && class.median_s() <= median_max_s
                    }
                };
            is_changed |= is_prompt != class.is_prompt;
            class.is_prompt = is_prompt;
            if is_prompt {
                in_flight = Some(in_flight.unwrap_or_default() + f64::from(class.in_flight));
                completed += class.completed();
            }
        }
        self.bound(in_flight, completed, limit, numbers);
        is_changed
    }

    /// Sets the bound: `in_flight` prompt requests, `completed` of them in this tick.
    fn bound(&mut self, in_flight: Option<f64>, completed: f64, limit: u32, numbers: Numbers) {
        let Some(in_flight) = in_flight else { return *self = Self::default() };
        if self.limit <= 0.0 {
            *self = Self { limit: in_flight.max(limit.into()).max(numbers.start), shown: 0.0 };
        }
        if in_flight >= self.limit / numbers.much {
            self.shown += completed;
        }
        if self.shown >= self.limit {
            *self = Self { limit: (self.limit * numbers.much).min(LIMIT_MAX.into()), shown: 0.0 };
        }
    }
}
