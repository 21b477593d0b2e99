//! The responses of an interval, from the histograms in which the kernel counted them: the planner takes a list, as
//! simulator and gateway have one.

use flashweir_admission::flash_crowd::Response;
use flashweir_core::Instant;
use flashweir_core::limits::RESPONSES_PER_SAMPLE;

/// Responses of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) count: u64,
    /// When their connections began, or were let in at the earliest.
    pub(crate) started: Instant,
}

/// At most [`RESPONSES_PER_SAMPLE`] responses, every so-many-th where there are more, and how many were left out.
pub(crate) fn unfold(groups: &[Group]) -> (Vec<Response>, u64) {
    let total: u64 = groups.iter().map(|group| group.count).sum();
    let kept = total.min(RESPONSES_PER_SAMPLE as u64);
    let mut responses = Vec::with_capacity(kept as usize);
    let mut passed = 0;
    for group in groups {
        passed += group.count;
        // So many of all that were passed so far: rounding never adds up.
        let wanted = u128::from(passed) * u128::from(kept) / u128::from(total.max(1));
        responses.resize(wanted as usize, response(group));
    }
    (responses, total - kept)
}

fn response(group: &Group) -> Response {
    Response {
        started: group.started,
        bytes: 0,
        // A router does not know what a response's latency should be; zero scores as "no wait".
        latency_s: 0.0,
        rate_bytes_per_s: Some(group.rate_bytes_per_s as f32),
        url_class: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(rate_bytes_per_s: u64, count: u64) -> Group {
        Group { rate_bytes_per_s, count, started: Instant::from_millis(5) }
    }

    fn rates(responses: &[Response]) -> Vec<f32> {
        responses.iter().filter_map(|response| response.rate_bytes_per_s).collect()
    }

    #[test]
    fn each_counted_response_becomes_one() {
        let (responses, left_out) = unfold(&[group(150, 2), group(300, 0), group(600, 1)]);
        assert_eq!(rates(&responses), [150.0, 150.0, 600.0]);
        assert_eq!((responses[0].started, left_out), (Instant::from_millis(5), 0));
        assert_eq!(unfold(&[]), (Vec::new(), 0));
    }

    #[test]
    fn more_than_the_planner_takes_are_thinned_evenly() {
        let most = RESPONSES_PER_SAMPLE as u64;
        let (responses, left_out) = unfold(&[group(1, 3 * most), group(2, most), group(4, 7)]);
        assert_eq!((responses.len() as u64, left_out), (most, 3 * most + 7));
        let slow = rates(&responses).into_iter().filter(|rate| *rate < 2.0).count() as f64;
        assert!((slow / most as f64 - 0.75).abs() < 0.001, "{slow}");
    }

    #[test]
    fn counts_beyond_any_machine_do_not_overflow() {
        let most = RESPONSES_PER_SAMPLE as u64;
        let (responses, left_out) = unfold(&[group(1, u64::MAX / 2), group(2, u64::MAX / 2)]);
        assert_eq!((responses.len() as u64, left_out), (most, u64::MAX - 1 - most));
    }
}
