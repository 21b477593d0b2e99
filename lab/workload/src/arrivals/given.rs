//! Arrivals given one by one.

use super::ArrivalError;
use std::sync::Arc;
use std::time::Duration;

/// Moments in order, and how long the whole lasts; see
/// [`ArrivalProcess::given_within`](super::ArrivalProcess::given_within).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    moments: Arc<[Duration]>,
    length: Duration,
}

impl Given {
    /// Nothing comes after the last moment unless `length` says so.
    pub(super) fn new(moments: Arc<[Duration]>, length: Option<Duration>) -> Result<Self, ArrivalError> {
        if let Some(index) = moments.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(ArrivalError::OutOfOrder(index + 1));
        }
        let last = moments.last().copied().unwrap_or_default();
        let length = length.unwrap_or(last);
        if last > length {
            return Err(ArrivalError::AfterTheEnd { last, length });
        }
        Ok(Self { moments, length })
    }

    pub(super) fn moments(&self) -> &[Duration] {
        &self.moments
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArrivalError, ArrivalProcess};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn given_moments_must_be_in_order() {
        let process = ArrivalProcess::given([0, 2, 2].map(|second| second * SECOND)).unwrap();
        assert_eq!((process.length(), process.expected()), (2 * SECOND, 3.0));
        assert_eq!(process.moments(1).last(), Some(2 * SECOND));
        let wrong = ArrivalProcess::given([1, 2, 1].map(|second| second * SECOND));
        assert_eq!(wrong, Err(ArrivalError::OutOfOrder(2)));
        assert_eq!(ArrivalProcess::given([]).unwrap().length(), Duration::ZERO);
    }

    #[test]
    fn a_length_may_be_given_and_nobody_comes_after_it() {
        let workers = ArrivalProcess::given_within([Duration::ZERO; 3], 10 * SECOND).unwrap();
        assert_eq!((workers.length(), workers.expected()), (10 * SECOND, 3.0));
        assert!(workers.moments(1).eq([Duration::ZERO; 3]));
        assert!(ArrivalProcess::given_within([SECOND], SECOND).is_ok());
        let late = ArrivalProcess::given_within([SECOND, 2 * SECOND], SECOND);
        assert_eq!(late, Err(ArrivalError::AfterTheEnd { last: 2 * SECOND, length: SECOND }));
        assert_eq!(ArrivalProcess::given_within([], SECOND).unwrap().length(), SECOND);
    }
}
