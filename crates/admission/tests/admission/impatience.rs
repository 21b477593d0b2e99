//! Listing of sources that ignore `Retry-After`: properties over any behaviour that must never be, and those
//! that must.

use flashweir_admission::fairness::{
    CALM_AFTER, CLIENTS_MIN, EARLY_RETURNS, FORGIVEN_AFTER, Impatience, LISTED_FOR, Listing, TIMES_MAX,
};
use flashweir_core::hash::mix;
use flashweir_core::limits::IMPATIENT_TRACKED;
use flashweir_core::{Duration, Instant, Rng};
use proptest::prelude::*;

const SOURCE: u64 = mix(1);
const OTHER: u64 = mix(2);

fn at(millis: u64) -> Instant {
    // The clock does not begin at 0 in a process either.
    Instant::from_millis(5_000 + millis)
}

fn retry_after(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Refuses a source `per_s` times a second, beside a visitor of another address; the first listing and when.
fn hammer(
    impatience: &Impatience,
    from_ms: u64,
    for_ms: u64,
    per_s: u64,
    retry_after_s: u64,
) -> Option<(u64, Listing)> {
    (0..for_ms * per_s / 1_000).find_map(|n| {
        let millis = from_ms + n * 1_000 / per_s;
        if n % per_s == 0 {
            impatience.arrived(at(millis), OTHER);
        }
        impatience
            .refused(at(millis), SOURCE, 9, retry_after(retry_after_s))
            .map(|listing| (millis - from_ms, listing))
    })
}

#[test]
fn one_client_that_hammers_is_listed_within_half_a_minute_or_so() {
    for (per_s, retry_after_s, within_s) in
        [(1_000, 2, 5), (1_000, 1, 6), (200, 4, 33), (100, 16, 45), (50, 60, 80)]
    {
        let (after_ms, listing) =
            hammer(&Impatience::default(), 0, 200_000, per_s, retry_after_s).expect("listed");
        assert!(after_ms <= within_s * 1_000, "{per_s}/s asked to wait {retry_after_s} s: {after_ms} ms");
        assert_eq!(listing, Listing { during: LISTED_FOR, times: 1 });
        // Thousands of early returns, never a handful.
        let refusals = after_ms * per_s / 1_000;
        assert!(
            refusals >= EARLY_RETURNS * CLIENTS_MIN,
            "{per_s}/s asked to wait {retry_after_s} s: after {refusals}"
        );
    }
}

/// Its connections that are still open are refused, too, and several workers may refuse it at the same time.
#[test]
fn a_listed_source_that_goes_on_is_listed_again_only_when_its_time_is_over() {
    let impatience = Impatience::default();
    let (after_ms, first) = hammer(&impatience, 0, 200_000, 1_000, 2).expect("listed");
    let over_ms = after_ms + first.during.as_millis() as u64;
    assert_eq!(hammer(&impatience, after_ms + 1, over_ms - after_ms - 2_000, 1_000, 2), None);
    let (_, second) = hammer(&impatience, over_ms, 200_000, 1_000, 2).expect("listed again");
    assert_eq!(second, Listing { during: 2 * LISTED_FOR, times: 2 });
}

/// Goal: a person who reloads is never listed. Method: three reloads a second for ten minutes, at any
/// `Retry-After`.
#[test]
fn a_person_who_reloads_for_ten_minutes_is_not_listed() {
    for retry_after_s in [1, 2, 4, 8, 30, 60, 120] {
        assert_eq!(
            hammer(&Impatience::default(), 0, 600_000, 3, retry_after_s),
            None,
            "asked to wait {retry_after_s} s"
        );
    }
}

#[test]
fn a_source_with_people_is_not_listed_until_ten_minutes_after_the_last_of_them() {
    let impatience = Impatience::default();
    impatience.saw_person(at(0), SOURCE);
    assert!(impatience.has_people(at(0), SOURCE) && !impatience.has_people(at(0), OTHER));
    assert_eq!(hammer(&impatience, 0, 60_000, 1_000, 4), None);
    impatience.saw_person(at(60_000), SOURCE);
    assert!(impatience.has_people(at(650_000), SOURCE) && !impatience.has_people(at(680_000), SOURCE));
    // What it did while it had them is held against it for no longer than anything else.
    assert!(hammer(&impatience, 700_000, 60_000, 1_000, 4).is_some());
}

/// Goal: a proxy that the operator did not declare is not cut off with everybody behind it. Method: no
/// client of another address.
#[test]
fn a_source_beside_which_there_is_no_other_is_not_listed() {
    let impatience = Impatience::default();
    let alone = (0..600_000).find_map(|n| impatience.refused(at(n), SOURCE, n, retry_after(4)));
    assert_eq!(alone, None);
    impatience.arrived(at(600_000), OTHER);
    let listed = (600_000..700_000).find_map(|n| impatience.refused(at(n), SOURCE, 9, retry_after(4)));
    assert!(listed.is_some());
}

#[test]
fn listings_grow_to_a_maximum_and_are_forgotten_one_by_one() {
    let impatience = Impatience::default();
    let mut millis = 0;
    let mut again = |pause: Duration| {
        millis += pause.as_millis() as u64;
        let (after, listing) = hammer(&impatience, millis, 100_000, 1_000, 4).expect("listed");
        millis += after + listing.during.as_millis() as u64;
        (listing.times, listing.during.as_secs())
    };
    let grown: Vec<_> = (0..9).map(|_| again(Duration::ZERO)).collect();
    let expected = [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 640), (7, 640), (7, 640)];
    assert_eq!(grown, expected);
    assert_eq!(again(2 * FORGIVEN_AFTER + Duration::from_secs(1)), (6, 320));
    assert_eq!(again(FORGIVEN_AFTER * (TIMES_MAX + 1)), (1, 10));
}

#[test]
fn the_slate_is_clean_after_a_listing_and_after_forget() {
    let impatience = Impatience::default();
    let (first, _) = hammer(&impatience, 0, 100_000, 1_000, 4).expect("listed");
    let (second, listing) = hammer(&impatience, 20_000, 100_000, 1_000, 4).expect("listed again");
    assert!(first.abs_diff(second) <= first / 10 && listing.times == 2, "{first} and {second} ms");
    impatience.forget();
    let (third, listing) = hammer(&impatience, 60_000, 100_000, 1_000, 4).expect("listed");
    assert!(first.abs_diff(third) <= first / 10 && listing.times == 1, "{first} and {third} ms");
}

#[test]
fn the_service_is_short_for_half_a_minute_after_the_last_refusal() {
    let impatience = Impatience::default();
    assert!(!impatience.is_short(at(0)));
    impatience.refused(at(0), SOURCE, 1, retry_after(1));
    assert!(impatience.is_short(at(29_000)));
    assert!(!impatience.is_short(at(1_000) + CALM_AFTER + Duration::from_secs(1)));
}

/// Goal: memory is bounded and heavy sources are found under a flood of others. Method: half a million
/// addresses beside one that hammers.
#[test]
fn a_flood_of_sources_hides_none_that_hammers() {
    let impatience = Impatience::default();
    let bytes = impatience.memory_bytes();
    let mut listed = None;
    for n in 0..500_000 {
        let now = at(n / 50);
        assert_eq!(
            impatience.refused(now, mix(1_000 + n), 1, retry_after(4)),
            None,
            "a source with one request"
        );
        if n % 50 == 0 {
            listed = listed.or(impatience.refused(now, SOURCE, 9, retry_after(4)));
        }
    }
    assert!(listed.is_some());
    assert_eq!(impatience.memory_bytes(), bytes);
    assert!(bytes < (IMPATIENT_TRACKED * 32 + 300_000), "{bytes}");
}

#[test]
fn a_clock_that_jumps_lists_no_client_that_keeps_to_its_time() {
    for jump_s in [3_600, 86_400 * 30, 86_400 * 365, 86_400 * 36_500] {
        let impatience = Impatience::default();
        for step in 0..2_000_u64 {
            let base = if step % 2 == 0 { 100 } else { 100 + jump_s };
            let now = Instant::from_secs(base + step * 4);
            impatience.arrived(now, OTHER);
            assert_eq!(impatience.refused(now, SOURCE, 9, retry_after(4)), None, "step {step}, {jump_s} s");
        }
    }
    for nanos in [u64::MAX, 0, u64::MAX / 2, 1, u64::MAX] {
        let impatience = Impatience::default();
        impatience.saw_person(Instant::from_nanos(nanos), OTHER);
        impatience.refused(Instant::from_nanos(nanos), SOURCE, 0, Duration::MAX);
        impatience.refused(Instant::from_nanos(nanos), 0, 0, Duration::ZERO);
    }
}

/// A source's clients, each refused, and back `retry_after_s` later or a little after that; now and then one
/// reloads at once, a few times.
fn crowd(
    clients: u64,
    retry_after_s: &[u64],
    are_distinguishable: bool,
    reloads: u64,
    seed: u64,
) -> Option<Listing> {
    let impatience = Impatience::default();
    let mut rng = Rng::new(seed);
    let mut due: std::collections::BinaryHeap<_> =
        (0..clients).map(|client| (std::cmp::Reverse(rng.below(20_000)), client)).collect();
    for turn in 0..20_000 {
        let (std::cmp::Reverse(millis), client) = due.pop()?;
        let seconds = retry_after_s[(turn * retry_after_s.len() as u64 / 20_000) as usize];
        if turn % 100 == 0 {
            impatience.arrived(at(millis), OTHER);
        }
        let key = if are_distinguishable { mix(77 + client) } else { 5 };
        // Before it waits, once in a while.
        let times = if turn % 50 == 0 { 1 + reloads } else { 1 };
        for _ in 0..times {
            let listing = impatience.refused(at(millis), SOURCE, key, retry_after(seconds));
            if listing.is_some() {
                return listing;
            }
        }
        due.push((std::cmp::Reverse(millis + 1_000 * seconds + rng.below(3_000)), client));
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// An office of as many clients as there may be, indistinguishable, who keep to their `Retry-After`, at
    /// any value and any change of it.
    #[test]
    fn clients_who_wait_are_never_listed(
        clients in 1..=CLIENTS_MIN, retry_after_s in proptest::collection::vec(1_u64..=60, 1..6), reloads in 0_u64..8, seed: u64,
    ) {
        // A fiftieth of them reloads each time; with a bit less than the assumed number there is room for
        // them.
        let clients = clients * 4 / 5;
        prop_assert_eq!(crowd(clients.max(1), &retry_after_s, false, reloads, seed), None);
        prop_assert_eq!(crowd(clients.max(1), &retry_after_s, true, reloads, seed), None);
    }

    /// A proxy with thousands of clients behind it, distinguished by their sessions.
    #[test]
    fn thousands_who_wait_behind_one_address_are_never_listed(
        clients in CLIENTS_MIN..6_000, retry_after_s in proptest::collection::vec(1_u64..=60, 1..4), seed: u64,
    ) {
        prop_assert_eq!(crowd(clients, &retry_after_s, true, 2, seed), None);
    }

    /// Any requests at all: no more memory, and a listing is within its bounds.
    #[test]
    fn listings_are_bounded(steps in proptest::collection::vec((0_u64..3_000, 0_u64..4, 0_u64..200, any::<u64>()), 0..400)) {
        let impatience = Impatience::default();
        let mut now = at(0);
        for (wait_ms, source, retry_after_s, client) in steps {
            now += Duration::from_millis(wait_ms);
            let listing = impatience.refused(now, mix(source), client, retry_after(retry_after_s));
            if let Some(Listing { during, times }) = listing {
                prop_assert!(during >= LISTED_FOR && during <= LISTED_FOR * 64 && (1..=TIMES_MAX).contains(&times));
            }
        }
    }
}
