//! Servers that fail, or are silent, while the others answer.
//!
//! ```text
//! errors:   errors ≥ 5  and  errors/answers ≥ ½  and  the others' errors/answers at most half of that
//! silence:  no answer while the others gave 10 each, with at least 3 requests waiting all along
//! ```
//!
//! Why a comparison: a service that is overloaded or broken as a whole fails on all servers, and leaving some
//! out would make it worse. A request goes to a server by load, not by client, so a client whose requests
//! fail fails on all of them alike.
//!
//! *Errors* are answers with a status that speaks of the server (500, 502, 503, 504) and answers that did not
//! come in time; both sums decay by [`DECAY`] at each evaluation. *Silence*: a server that gets its part of
//! the requests answers 10 by chance not once in e¹⁰ = 22,000 times. Three waiting requests because a
//! balancer by load sends a server with one long request nothing else while the others are idle.
//!
//! Zero samples, or one server: no server is an outlier. Cost: O(servers) for each evaluation.

/// Factor on the sums after each evaluation: an answer five evaluations back counts a third.
const DECAY: f64 = 0.8;
/// Errors that count as evidence.
const ERRORS_MIN: f64 = 5.0;
/// Errors over answers from which a server may be an outlier.
const ERROR_SHARE: f64 = 0.5;
/// The others' share of errors over the server's, above which the fault is common to all servers.
const OTHERS_MAX: f64 = 0.5;
/// Answers of an average other server during which a silent one should have answered.
const EXPECTED_ANSWERS: f64 = 10.0;
/// Requests that wait for a silent server at every evaluation.
const WAITING_MIN: u32 = 3;

/// A server's answers since the last evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// All answers, errors included.
    pub answered: u64,
    /// Errors.
    pub errors: u64,
    /// Requests that wait for an answer now.
    pub waiting: u32,
}

/// Evidence kept of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OutlierEvidence {
    answered: f64,
    errors: f64,
    /// Answers of an average other server since this one gave its last, or had too few to answer.
    expected: f64,
}

impl OutlierEvidence {
    /// Forgets everything, for a server that starts again.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds what happened; `others` is the mean number of answers of the other usable servers.
    pub fn add(&mut self, answers: Answers, others: f64) {
        self.answered = self.answered * DECAY + answers.answered as f64;
        self.errors = self.errors * DECAY + answers.errors as f64;
        let is_silent = answers.answered == 0 && answers.waiting >= WAITING_MIN;
        self.expected = if is_silent { self.expected + others } else { 0.0 };
    }

    /// Returns whether the server is an outlier among `others`.
    #[must_use]
    pub fn is_outlier<'a>(&self, others: impl Iterator<Item = &'a Self>) -> bool {
        let (answered, errors, count) = others.fold((0.0, 0.0, 0u32), |(answered, errors, count), other| {
            (answered + other.answered, errors + other.errors, count + 1)
        });
        if count == 0 {
            return false;
        }
        let share = self.errors / self.answered.max(1.0);
        let is_failing = self.errors >= ERRORS_MIN
            && share >= ERROR_SHARE
            && answered >= ERRORS_MIN
            && errors / answered <= OTHERS_MAX * share;
        is_failing || self.expected >= EXPECTED_ANSWERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// The outliers after `rounds` evaluations of the same answers.
    fn outliers(rounds: usize, answers: &[Answers]) -> Vec<usize> {
        let mut evidence = vec![OutlierEvidence::default(); answers.len()];
        for _ in 0..rounds {
            let sum: u64 = answers.iter().map(|it| it.answered).sum();
            for (evidence, answers_of) in evidence.iter_mut().zip(answers) {
                let others = (sum - answers_of.answered) as f64 / (answers.len() - 1).max(1) as f64;
                evidence.add(*answers_of, others);
            }
        }
        let is_outlier = |&server: &usize| {
            let others = evidence.iter().enumerate().filter(|(other, _)| *other != server);
            evidence[server].is_outlier(others.map(|(_, evidence)| evidence))
        };
        (0..answers.len()).filter(is_outlier).collect()
    }

    const NONE: [usize; 0] = [];

    fn answers(answered: u64, errors: u64, waiting: u32) -> Answers {
        Answers { answered, errors, waiting }
    }

    #[test]
    fn a_server_that_fails_alone_is_one_and_a_broken_service_has_none() {
        let well = answers(10, 0, 1);
        assert_eq!(outliers(1, &[well, answers(10, 9, 0), well]), [1]);
        assert_eq!(outliers(9, &[answers(10, 9, 0); 3]), NONE, "all fail");
        assert_eq!(outliers(9, &[answers(10, 5, 0), answers(10, 4, 0)]), NONE, "nearly all fail");
        assert_eq!(outliers(1, &[well, answers(4, 4, 0)]), NONE, "too few");
        assert_eq!(outliers(9, &[well, answers(2, 2, 0)]), [1], "a few in each round");
        assert_eq!(outliers(9, &[answers(10, 9, 0)]), NONE, "the only server");
        assert_eq!(outliers(9, &[well, answers(10, 4, 0)]), NONE, "it answers most");
    }

    #[test]
    fn a_silent_server_is_one_while_the_others_answer() {
        let well = answers(4, 0, 3);
        assert_eq!(outliers(2, &[well, answers(0, 0, 3)]), NONE);
        assert_eq!(outliers(3, &[well, answers(0, 0, 3)]), [1]);
        assert_eq!(outliers(9, &[well, answers(0, 0, 2)]), NONE, "two long requests");
        assert_eq!(outliers(9, &[answers(0, 0, 9); 4]), NONE, "all are silent");
        assert_eq!(outliers(9, &[well, answers(1, 0, 50)]), NONE, "slow is not silent");
    }
}
