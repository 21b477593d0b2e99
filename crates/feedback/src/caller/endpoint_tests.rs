use super::*;
use crate::{Feedback, Field};
use alloc::vec::Vec;
use flashweir_core::Rng;
use proptest::prelude::*;

type Key = fn(&[&[u8]]) -> [u8; 32];

/// No cryptography: a sum that depends on every byte is enough to tell a right tag from a wrong one.
fn key(parts: &[&[u8]]) -> [u8; 32] {
    let mut tag = [7u8; 32];
    for (at, byte) in parts.iter().flat_map(|part| part.iter()).enumerate() {
        tag[at % 16] = tag[at % 16].wrapping_mul(31).wrapping_add(*byte);
    }
    tag
}

fn ring() -> KeyRing<Key> {
    KeyRing::new(alloc::vec![(1, key as Key)]).unwrap()
}

fn endpoint(settings: EndpointSettings) -> Endpoint<u32, Key> {
    Endpoint::new(settings, ring(), b"shop>api", Rng::new(1))
}

fn message(epoch: u32, sequence: u32, rate: Option<f64>) -> Feedback {
    let rate = rate.map(Rate::from_per_second);
    Feedback { epoch, sequence, from_rank: 1, severity: 1, rate, ttl: Duration::from_secs(2) }
}

fn hear(
    node: &mut Endpoint<u32, Key>,
    now: Instant,
    feedback: &Feedback,
) -> Result<Option<Taken>, FeedbackError> {
    let field = Field::new(feedback, &ring(), b"shop>api").unwrap();
    node.answered(now, &Answer { overload: Some(field.as_bytes()), ..Answer::default() })
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Requests of rank 3 that go of a hundred a second from `from_ms` to `to_ms`.
fn sent(node: &mut Endpoint<u32, Key>, from_ms: u64, to_ms: u64) -> u64 {
    let before = node.report(at(from_ms)).sent;
    for ms in (from_ms..to_ms).step_by(10) {
        while node.next(at(ms)).is_some() {}
        let _ = node.arrive(at(ms), 3, false, 0);
    }
    node.report(at(to_ms)).sent - before
}

#[test]
fn what_the_node_asks_for_is_kept_and_its_end_is_gentle() {
    let mut node = endpoint(EndpointSettings::default());
    assert_eq!(sent(&mut node, 0, 2_000), 200);
    assert_eq!(hear(&mut node, at(2_000), &message(1, 1, Some(10.0))), Ok(Some(Taken::New)));
    assert!((18..=23).contains(&sent(&mut node, 2_000, 3_990)));
    assert_eq!(node.condition(), Condition::Limited);
    // Nothing comes any more: half of what is offered at first, then 1.5 times as much each second.
    let opening = sent(&mut node, 4_010, 5_010);
    assert!((50..=75).contains(&opening), "{opening}");
    assert_eq!(node.condition(), Condition::Expired);
    assert!(sent(&mut node, 5_010, 8_010) > 260);
    let report = node.report(at(8_010));
    assert_eq!((report.condition, report.rate), (Condition::Open, None));
    assert!(
        report.held_for > Duration::from_secs(4) && report.held_for < Duration::from_secs(5),
        "{report:?}"
    );
}

#[test]
fn bad_fields_are_counted_by_what_is_wrong_and_change_nothing() {
    let mut node = endpoint(EndpointSettings::default());
    let good = Field::new(&message(1, 5, Some(10.0)), &ring(), b"shop>api").unwrap();
    let elsewhere = Field::new(&message(1, 6, Some(0.0)), &ring(), b"blog>api").unwrap();
    let untagged = Field::new(&message(1, 6, Some(0.0)), &KeyRing::<Key>::empty(), b"").unwrap();
    let unknown =
        Field::new(&message(1, 6, None), &KeyRing::new(alloc::vec![(2, key as Key)]).unwrap(), b"shop>api")
            .unwrap();
    let mut flipped = good.as_bytes().to_vec();
    flipped[20] = if flipped[20] == b'A' { b'B' } else { b'A' };
    let values: [(&[u8], FeedbackOutcome); 8] = [
        (good.as_bytes(), FeedbackOutcome::New),
        (good.as_bytes(), FeedbackOutcome::Repeated),
        (elsewhere.as_bytes(), FeedbackOutcome::Forged),
        (&flipped, FeedbackOutcome::Forged),
        (untagged.as_bytes(), FeedbackOutcome::Untagged),
        (unknown.as_bytes(), FeedbackOutcome::UnknownKey),
        (&good.as_bytes()[..30], FeedbackOutcome::Length),
        (b":this is no base64 but has the right length!!!", FeedbackOutcome::Syntax),
    ];
    for (value, expected) in values {
        let before = node.report(at(1_000)).feedback.of(expected);
        let _ = node.answered(at(1_000), &Answer { overload: Some(value), ..Answer::default() });
        let report = node.report(at(1_000));
        assert_eq!(report.feedback.of(expected), before + 1, "{expected:?}");
        assert_eq!(report.limit.map(|limit| limit.rate), Some(Rate::from_per_second(10.0)), "{expected:?}");
    }
    let lines = Answer { overload: Some(good.as_bytes()), has_further_lines: true, quota: None };
    assert_eq!(node.answered(at(1_000), &lines), Err(FeedbackError::Lines));
    assert_eq!(node.answered(at(1_000), &Answer::default()), Ok(None));
    assert_eq!(node.report(at(1_000)).feedback.of(FeedbackOutcome::Missing), 1);
    assert_eq!(hear(&mut node, at(1_001), &message(1, 4, None)), Ok(Some(Taken::Stale)), "a replay");
}

#[test]
fn a_rate_of_zero_leaves_a_probe_and_a_silent_node_a_trial() {
    let mut node = endpoint(EndpointSettings::default());
    assert_eq!(sent(&mut node, 0, 2_000), 200);
    hear(&mut node, at(2_000), &message(1, 1, Some(0.0))).unwrap();
    // A hundredth of a hundred a second, and the burst.
    assert!((2..=5).contains(&sent(&mut node, 2_000, 4_000)));
    hear(&mut node, at(4_000), &message(1, 2, None)).unwrap();
    (0..5).for_each(|_| node.unanswered(at(5_100)));
    assert!(matches!(node.arrive(at(5_100), 0, false, 0), Arrival::Refuse(0, CallerRefusal::Silent { .. })));
    assert!(!node.is_open(at(5_100), 0) && node.is_open(at(5_350), 9));
    assert_eq!(node.arrive(at(5_350), 9, false, 1), Arrival::Send(1), "a trial of any rank");
    node.answered(at(5_360), &Answer::default()).unwrap();
    assert_eq!(node.condition(), Condition::Returning);
    // What is offered was forgotten meanwhile: the ramp begins low, and is over after 2.7 s.
    let back = sent(&mut node, 5_360, 9_000);
    assert!((120..340).contains(&back), "{back}");
    assert_eq!(node.condition(), Condition::Open);
}

#[test]
fn a_spent_quota_holds_back_only_where_it_is_obeyed() {
    let quota = Some(Quota { remaining: 0, reset: Duration::from_secs(600) });
    let answer = Answer { quota, ..Answer::default() };
    for (obeys_quota, expected) in [(false, 200..=200), (true, 2..=5)] {
        let mut node = endpoint(EndpointSettings { obeys_quota, ..EndpointSettings::default() });
        sent(&mut node, 0, 1_000);
        node.answered(at(1_000), &answer).unwrap();
        let count = sent(&mut node, 1_000, 3_000);
        assert!(expected.contains(&count), "{obeys_quota}: {count}");
        let after = sent(&mut node, 61_000, 63_000);
        assert_eq!(after, 200, "no quota is obeyed for longer than a minute");
    }
}

#[test]
fn a_datagram_needs_a_key_and_its_own_context() {
    let mut node = endpoint(EndpointSettings::default());
    let of =
        |sequence, context: &[u8]| Field::new(&message(1, sequence, Some(10.0)), &ring(), context).unwrap();
    let context = b"shop>api@10.0.0.5:80";
    assert_eq!(node.hear(at(0), of(1, context).as_bytes(), context), Ok(Taken::New));
    assert_eq!(node.condition(), Condition::Limited);
    assert_eq!(node.hear(at(0), of(1, context).as_bytes(), context), Ok(Taken::Stale), "replayed");
    let of_response = of(2, b"shop>api");
    assert_eq!(node.hear(at(0), of_response.as_bytes(), context), Err(FieldError::Forged.into()));
    let mut keyless =
        Endpoint::<u32, Key>::new(EndpointSettings::default(), KeyRing::empty(), b"shop>api", Rng::new(1));
    let untagged = Field::new(&message(1, 1, Some(0.0)), &KeyRing::<Key>::empty(), b"").unwrap();
    assert_eq!(keyless.hear(at(0), untagged.as_bytes(), context), Err(FieldError::Untagged.into()));
    assert_eq!(keyless.condition(), Condition::Open);
}

#[test]
fn work_that_has_begun_goes_on_credit() {
    let mut node = endpoint(EndpointSettings::default());
    hear(&mut node, at(0), &message(1, 1, Some(10.0))).unwrap();
    for number in 0..12 {
        assert_eq!(node.arrive(at(0), 3, true, number), Arrival::Send(number));
    }
    assert!(!node.is_open(at(900), 3), "the bucket owes");
    assert!(node.is_open(at(900), 0));
    assert!(node.is_open(at(1_200), 3));
}

proptest! {
    /// In every sequence of events each request is sent, refused or waits, and a node is never cut off for
    /// good.
    #[test]
    fn every_request_is_accounted_for(
        steps in proptest::collection::vec((0u64..300, 0u8..7, 0u32..100), 1..300), obeys_quota: bool,
    ) {
        let mut node = endpoint(EndpointSettings { obeys_quota, ..EndpointSettings::default() });
        let (mut now_ms, mut arrived, mut sent, mut refused, mut sequence) = (1, 0u64, 0u64, 0u64, 0);
        for (gap_ms, what, number) in steps {
            now_ms += gap_ms;
            let now = at(now_ms);
            match what {
                0..=2 => {
                    arrived += 1;
                    let too_late_at = now + Duration::from_millis(u64::from(number) * 5);
                    match node.arrive_before(now, (number % 16) as u8, what == 2, too_late_at, number) {
                        Arrival::Send(_) => sent += 1,
                        Arrival::Queued(displaced) => refused += u64::from(displaced.is_some()),
                        Arrival::Refuse(..) => refused += 1,
                    }
                }
                3 => {
                    sequence += number % 2;
                    let rate = (number % 7 > 0).then_some(f64::from(number));
                    let _ = hear(&mut node, now, &message(1, sequence, rate));
                }
                4 => {
                    node.unanswered(now);
                    node.withdraw(|kept| kept % 5 == number % 5);
                }
                5 => {
                    let quota = Some(Quota { remaining: u64::from(number % 2), reset: Duration::from_secs(number.into()) });
                    let _ = node.answered(now, &Answer { quota, ..Answer::default() });
                }
                _ => while let Some(released) = node.next(now) {
                    match released {
                        Released::Send(_) => sent += 1,
                        Released::Refuse(_) => refused += 1,
                    }
                },
            }
            let report = node.report(now);
            prop_assert_eq!(report.arrived, arrived);
            prop_assert_eq!((report.sent, report.refused_limit + report.refused_silent), (sent, refused));
            prop_assert_eq!(report.arrived, report.sent + refused + report.withdrawn + report.waiting as u64);
            prop_assert!(report.condition == Condition::Silent || report.condition == Condition::Open || report.rate.is_some());
            prop_assert!(report.rate.is_none_or(|rate| rate >= RATE_FLOOR));
        }
        // A minute of silence later every limit is over, and one answer ends the silence.
        let end = at(now_ms + 120_000);
        let _ = node.answered(end, &Answer::default());
        let open = at(now_ms + 130_000);
        prop_assert_eq!(node.report(open).condition, Condition::Open);
        let arrivals: Vec<_> = (0..3).map(|number| node.arrive(open, 15, false, number)).collect();
        let waited = arrivals.iter().any(|arrival| matches!(arrival, Arrival::Refuse(..)));
        prop_assert!(!waited);
    }
}
