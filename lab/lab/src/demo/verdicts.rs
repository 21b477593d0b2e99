//! Flashweir's status, sampled over time, and conclusions from it: pure arithmetic on samples.

use std::ops::Range;
use std::time::Duration;

/// One look at the gateway's status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sighting {
    /// Time on the run's clock (zero when the first client was due).
    pub(crate) at: Duration,
    /// `full` while the sentry turns some away, `alarm` or `probe` while the crowd detector limits; otherwise
    /// `normal`.
    pub(crate) mode: String,
    /// Cause of the load, as the gateway names it: `calm`, `popular`, ...
    pub(crate) cause: String,
    /// Requests at the origin at most.
    pub(crate) limit: Option<u64>,
}

impl Sighting {
    /// Limiting in any way.
    pub(crate) fn limiting(&self) -> bool {
        self.mode != "normal"
    }
}

/// Seconds from the crowd's beginning until the first were turned away; zero when Flashweir was already
/// limiting then, `None` when no client ever was.
pub(crate) fn protect_delay_s(sightings: &[Sighting], crowd: &Range<Duration>) -> Option<f64> {
    let before = sightings.iter().rev().find(|sighting| sighting.at <= crowd.start);
    if before.is_some_and(Sighting::limiting) {
        return Some(0.0);
    }
    let alarm = sightings.iter().find(|sighting| crowd.contains(&sighting.at) && sighting.limiting())?;
    Some((alarm.at - crowd.start).as_secs_f64())
}

/// Seconds from the crowd's end until nothing is limited any more and it stays so; zero when that was already
/// so, `None` when there was never a limit or it was still there at the last sighting.
pub(crate) fn release_delay_s(sightings: &[Sighting], crowd: &Range<Duration>) -> Option<f64> {
    let last_limit = sightings.iter().rposition(Sighting::limiting)?;
    let released = sightings.get(last_limit + 1)?;
    Some(released.at.saturating_sub(crowd.end).as_secs_f64())
}

/// The cause seen most often while limiting during the crowd; `None` when nothing was limited.
pub(crate) fn verdict(sightings: &[Sighting], crowd: &Range<Duration>) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for sighting in sightings.iter().filter(|sighting| crowd.contains(&sighting.at) && sighting.limiting()) {
        match counts.iter_mut().find(|(cause, _)| *cause == sighting.cause) {
            Some((_, count)) => *count += 1,
            None => counts.push((&sighting.cause, 1)),
        }
    }
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(cause, _)| cause.to_owned())
}

/// Number of alarms until `quiet_until`, before the first request of the crowd.
pub(crate) fn early_alarms(sightings: &[Sighting], quiet_until: Duration) -> usize {
    let early: Vec<_> = sightings.iter().take_while(|sighting| sighting.at < quiet_until).collect();
    let raised = early.windows(2).filter(|pair| !pair[0].limiting() && pair[1].limiting()).count();
    raised + usize::from(early.first().is_some_and(|first| first.limiting()))
}

/// Stretches of time in which `state` did not change, each until the next sighting.
pub(crate) fn stretches<'a>(
    sightings: &'a [Sighting],
    state: impl Fn(&'a Sighting) -> &'a str,
) -> Vec<(Range<Duration>, &'a str)> {
    let mut stretches: Vec<(Range<Duration>, &str)> = Vec::new();
    for sighting in sightings {
        match stretches.last_mut() {
            Some((range, last)) => {
                range.end = sighting.at;
                if *last != state(sighting) {
                    stretches.push((sighting.at..sighting.at, state(sighting)));
                }
            }
            None => stretches.push((sighting.at..sighting.at, state(sighting))),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: Range<Duration> = Duration::from_secs(10)..Duration::from_secs(30);

    fn seen(at_ms: u64, mode: &str, cause: &str) -> Sighting {
        Sighting { at: Duration::from_millis(at_ms), mode: mode.into(), cause: cause.into(), limit: Some(2) }
    }

    fn usual() -> Vec<Sighting> {
        vec![
            seen(0, "normal", "too_few_samples"),
            seen(5_000, "normal", "calm"),
            seen(10_200, "normal", "surge_ok"),
            seen(10_700, "alarm", "popular"),
            seen(20_000, "alarm", "popular"),
            seen(29_000, "probe", "calm"),
            seen(33_000, "probe", "calm"),
            seen(34_500, "normal", "calm"),
            seen(36_000, "normal", "calm"),
        ]
    }

    #[test]
    fn delays_count_from_the_crowds_beginning_and_end() {
        assert_eq!(protect_delay_s(&usual(), &CROWD), Some(0.7));
        assert_eq!(release_delay_s(&usual(), &CROWD), Some(4.5));
        assert_eq!(verdict(&usual(), &CROWD).as_deref(), Some("popular"));
        assert_eq!(early_alarms(&usual(), CROWD.start), 0);
    }

    #[test]
    fn what_did_not_happen_is_none() {
        let calm = [seen(0, "normal", "calm"), seen(40_000, "normal", "calm")];
        for sightings in [&calm[..], &[]] {
            assert_eq!(protect_delay_s(sightings, &CROWD), None);
            assert_eq!(release_delay_s(sightings, &CROWD), None);
            assert_eq!(verdict(sightings, &CROWD), None);
        }
        // Still limiting when last seen: never released.
        assert_eq!(release_delay_s(&usual()[..7], &CROWD), None);
    }

    #[test]
    fn an_alarm_before_the_crowd_is_early_and_counts_as_protection_only_if_it_is_still_there() {
        let gone = [seen(1_000, "normal", "calm"), seen(2_000, "alarm", "popular"), usual()[1].clone()];
        assert_eq!(early_alarms(&gone, CROWD.start), 1);
        assert_eq!(protect_delay_s(&gone, &CROWD), None);
        assert_eq!(protect_delay_s(&gone[..2], &CROWD), Some(0.0));
        assert_eq!(early_alarms(&gone[1..], CROWD.start), 1);
    }

    #[test]
    fn a_limit_gone_before_the_crowd_has_ended_is_released_without_delay() {
        let early = [seen(11_000, "alarm", "popular"), seen(25_000, "normal", "calm")];
        assert_eq!(release_delay_s(&early, &CROWD), Some(0.0));
    }

    #[test]
    fn stretches_join_equal_states() {
        let usual = usual();
        let modes: Vec<_> = stretches(&usual, |sighting| &sighting.mode)
            .into_iter()
            .map(|(range, mode)| (range.start.as_millis(), range.end.as_millis(), mode))
            .collect();
        let expected = [
            (0, 10_700, "normal"),
            (10_700, 29_000, "alarm"),
            (29_000, 34_500, "probe"),
            (34_500, 36_000, "normal"),
        ];
        assert_eq!(modes, expected);
    }
}
