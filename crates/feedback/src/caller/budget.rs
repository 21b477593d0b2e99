//! Budget of retries: a part of all requests.
//!
//! **The rule.** Each first attempt adds `ratio` to a balance that is bounded; each further attempt takes 1
//! from it, or is not made. So in any interval further attempts are at most `ratio` of the first ones and the
//! reserve, for any failures.
//!
//! **Why not a number of attempts for each request.** Three attempts each are three times the load at the
//! moment when the node can serve least. Hedged requests draw on the same balance: to the node they are
//! attempts like others.
//!
//! **Cold start.** The balance begins with the reserve, so that a sender with few requests can retry at all.
//! Cost: one addition.

/// A balance of one attempt, in the unit it is kept in: parts of a million, so that small ratios add up
/// exactly.
const ATTEMPT: u64 = 1_000_000;

/// Settings of the retry budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetSettings {
    /// Further attempts as a part of first ones, 0 to 1. 0.1 by default: a node at its limit then gets a
    /// tenth more at most.
    pub ratio: f64,
    /// Attempts the balance begins with and holds at most. 10 by default: what a sender of ten requests a
    /// second earns in ten seconds.
    pub reserve: u32,
}

/// The balance. One for each target, shared by all of its nodes.
///
/// ```
/// use flashweir_feedback::caller::{BudgetSettings, RetryBudget};
/// let mut budget = RetryBudget::new(BudgetSettings { ratio: 0.5, reserve: 1 });
/// assert!(budget.withdraw());
/// assert!(!budget.withdraw());
/// budget.deposit();
/// budget.deposit();
/// assert!(budget.withdraw());
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    per_request: u64,
    balance_max: u64,
    balance: u64,
    granted: u64,
    denied: u64,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { ratio: 0.1, reserve: 10 }
    }
}

impl RetryBudget {
    /// With the reserve as balance. A ratio out of range is taken as the nearest in range.
    #[must_use]
    pub fn new(settings: BudgetSettings) -> Self {
        // `clamp` keeps NaN, and `as` makes it 0.
        let per_request = (settings.ratio.clamp(0.0, 1.0) * ATTEMPT as f64 + 0.5) as u64;
        let balance_max = u64::from(settings.reserve) * ATTEMPT;
        Self { per_request, balance_max, balance: balance_max, granted: 0, denied: 0 }
    }

    /// A first attempt is made.
    pub fn deposit(&mut self) {
        self.balance = (self.balance + self.per_request).min(self.balance_max);
    }

    /// Returns whether a further attempt may be made; then it counts as made.
    pub fn withdraw(&mut self) -> bool {
        let is_granted = self.balance >= ATTEMPT;
        if is_granted {
            self.balance -= ATTEMPT;
            self.granted += 1;
        } else {
            self.denied += 1;
        }
        is_granted
    }

    /// Further attempts that were made.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Further attempts that were not made because the balance was spent.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Over any interval: no more further attempts than the ratio of first ones, and the reserve.
        #[test]
        fn retries_stay_within_the_ratio_and_the_reserve(
            steps in proptest::collection::vec(proptest::bool::ANY, 1..400), ratio in 0.0f64..1.0, reserve in 0u32..20,
        ) {
            let mut budget = RetryBudget::new(BudgetSettings { ratio, reserve });
            let mut history = alloc::vec![(0u64, 0u64)];
            for is_retry in steps {
                let (mut first, mut further) = history[history.len() - 1];
                match is_retry {
                    true => further += u64::from(budget.withdraw()),
                    false => { budget.deposit(); first += 1; }
                }
                history.push((first, further));
            }
            for (from, before) in history.iter().enumerate() {
                for after in &history[from..] {
                    let allowed = ratio * (after.0 - before.0) as f64 + f64::from(reserve);
                    prop_assert!((after.1 - before.1) as f64 <= allowed + 1e-3);
                }
            }
            prop_assert_eq!(budget.granted(), history[history.len() - 1].1);
        }
    }

    #[test]
    fn a_ratio_that_is_no_number_allows_the_reserve_only() {
        let mut budget = RetryBudget::new(BudgetSettings { ratio: f64::NAN, reserve: 1 });
        (0..100).for_each(|_| budget.deposit());
        assert_eq!((budget.withdraw(), budget.withdraw(), budget.denied()), (true, false, 1));
    }
}
