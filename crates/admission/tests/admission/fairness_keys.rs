//! Goal: keys that a client chooses have no effect, and memory is flat however many there are. Method: a
//! sender who knows the code, and guesses the key of the hash; beside it the same under the guessed key,
//! where it does have an effect.

use flashweir_admission::fairness::{
    Acquaintance, Conduct, Evidence, Fairness, FairnessSettings, Impatience, RequestSigns, SIGNS, Sign,
};
use flashweir_core::limits::{FAIRNESS_CLAIMS, IMPATIENT_TRACKED, PEOPLE_KNOWN};
use flashweir_core::{Duration, Hasher64, Instant, Rng};

const GUESSED: (u64, u64) = (0, 0);
const TRUE: (u64, u64) = (0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321);
const COST_US: u32 = 10_000;
/// An address has a place in one set of four.
const CLAIM_SETS: u64 = FAIRNESS_CLAIMS as u64 / 4;

fn address(hasher: &Hasher64, number: u64) -> u32 {
    (hasher.hash(&[b"address", &number.to_le_bytes()]) as u32).max(1)
}

/// The part of a heavy address's requests that are demoted after ten seconds, beside people and addresses
/// that lie in its set of the table under the guessed key. All signs but the address and its network are
/// everybody's.
fn demoted_part(key: (u64, u64)) -> f64 {
    let (guessed, hasher) = (Hasher64::new(GUESSED.0, GUESSED.1), Hasher64::new(key.0, key.1));
    const HEAVY: u64 = 0;
    let set = |number: u64| u64::from(address(&guessed, number)) % CLAIM_SETS;
    let beside: Vec<u64> = (1..).filter(|&number| set(number) == set(HEAVY)).take(4).collect();
    let mut fairness = Fairness::new(FairnessSettings::default());
    let mut rng = Rng::new(7);
    let (mut sent, mut demoted) = (0_u64, 0_u64);
    for n in 0..60_000_u64 {
        let now = Instant::from_nanos(n * 1_000_000);
        let mut values = [0; SIGNS];
        let is_person = n % 10 == 7;
        // An eighth of the load is the heavy one's, half of what is served; three quarters are from four
        // heavier addresses that are to hide it: lighter ones take no place from it.
        let number = match n % 8 {
            0 => HEAVY,
            1..=6 => beside[rng.below(beside.len() as u64) as usize],
            _ => 1_000_000 + rng.below(5_000),
        };
        values[Sign::Address as usize] = address(&hasher, number);
        let person_key = hasher.hash(&[b"person", &(n / 10 % 50).to_le_bytes()]);
        let signs = RequestSigns { person_key, values, ..RequestSigns::default() };
        let known = Acquaintance { is_person, is_page_view: is_person, ..Acquaintance::default() };
        let cause = fairness.offer(now, &signs, known, COST_US);
        if !is_person && number == HEAVY && n > 10_000 {
            sent += 1;
            demoted += u64::from(cause.is_some());
        }
        if n % 4 == 0 {
            fairness.admit(COST_US);
        }
    }
    demoted as f64 / sent as f64
}

#[test]
fn addresses_chosen_to_collide_do_not_hide_a_heavy_one() {
    let (with_true, with_guessed) = (demoted_part(TRUE), demoted_part(GUESSED));
    println!("demoted of the heavy address: {with_true:.3}, under the guessed key {with_guessed:.3}");
    assert!(with_true > 0.99, "{with_true}");
    assert!(with_guessed < 0.5, "{with_guessed}: the attack that the key prevents");
}

/// The same for evidence of people: strangers chosen to take the places of people under a guessed key.
#[test]
fn sessions_chosen_to_collide_displace_no_stranger_before_it_is_known() {
    let asset = Conduct { is_asset: true, has_own_referer: true, has_session: true };
    let page = Conduct { is_asset: false, has_own_referer: false, has_session: true };
    let proven = |key: (u64, u64)| {
        let (guessed, hasher) = (Hasher64::new(GUESSED.0, GUESSED.1), Hasher64::new(key.0, key.1));
        let of = |hasher: &Hasher64, number: u64| hasher.hash(&[b"session", &number.to_le_bytes()]);
        let pair = |number: u64| of(&guessed, number) as usize & (PEOPLE_KNOWN - 1) & !1;
        let evidence = Evidence::default();
        let beside: Vec<u64> = (1..).filter(|&number| pair(number) == pair(0)).take(8).collect();
        let at = Instant::from_secs(100);
        // Those who collide come between every two requests of the one who is to become a person.
        let mut is_person = false;
        for conduct in [page, asset, asset, asset] {
            is_person = evidence.observe(at, of(&hasher, 0), conduct).is_person;
            for _ in 0..4 {
                beside.iter().for_each(|&number| {
                    evidence.observe(at, of(&hasher, number), page);
                });
            }
        }
        is_person
    };
    assert!(proven(TRUE));
    assert!(!proven(GUESSED), "the attack that the key prevents");
}

/// The same for sources that ignore `Retry-After`: addresses chosen to push one that hammers out of its
/// place.
#[test]
fn addresses_chosen_to_collide_hide_none_that_hammers() {
    let listed = |key: (u64, u64)| {
        let (guessed, hasher) = (Hasher64::new(GUESSED.0, GUESSED.1), Hasher64::new(key.0, key.1));
        let of = |hasher: &Hasher64, number: u64| hasher.hash(&[b"source", &number.to_le_bytes()]);
        let pair = |number: u64| of(&guessed, number) as usize & (IMPATIENT_TRACKED - 1) & !1;
        let beside: Vec<u64> = (1..).filter(|&number| pair(number) == pair(0)).take(2).collect();
        let impatience = Impatience::default();
        (0..60_000_u64).any(|n| {
            let now = Instant::from_millis(1_000 + n);
            // Two that hammer more have both of its places.
            for &number in [&beside[..], &beside[..]].concat().iter() {
                impatience.refused(now, of(&hasher, number), 1, Duration::from_secs(4));
            }
            impatience.refused(now, of(&hasher, 0), 1, Duration::from_secs(4)).is_some()
        })
    };
    assert!(listed(TRUE));
    assert!(!listed(GUESSED), "the attack that the key prevents");
}

/// A million keys here, ten million in the ignored test below: memory is what it was, and nothing is
/// allocated.
fn flood(keys: u64) {
    let (evidence, impatience) = (Evidence::default(), Impatience::default());
    let mut fairness = Fairness::new(FairnessSettings::default());
    let mut rng = Rng::new(11);
    let mut one = |fairness: &mut Fairness, n: u64| {
        let now = Instant::from_nanos(1_000_000_000 + n * 20_000);
        let conduct =
            Conduct { is_asset: rng.below(2) == 0, has_own_referer: rng.below(2) == 0, has_session: true };
        let values = std::array::from_fn(|_| rng.next_u64() as u32 | 1);
        let signs = RequestSigns { person_key: rng.next_u64() | 1, conduct, values };
        let known = evidence.observe(now, signs.person_key, signs.conduct);
        fairness.offer(now, &signs, known, COST_US);
        let source = rng.next_u64();
        impatience.refused(now, source, signs.person_key, Duration::from_secs(rng.below(60)));
        if n.is_multiple_of(7) {
            impatience.saw_person(now, source);
        }
    };
    one(&mut fairness, 0);
    let bytes = (fairness.memory_bytes(), impatience.memory_bytes());
    let counted = allocation_counter::measure(|| (1..keys).for_each(|n| one(&mut fairness, n)));
    assert_eq!(counted.count_total, 0);
    assert_eq!((fairness.memory_bytes(), impatience.memory_bytes()), bytes);
    println!("{keys} keys: {} + {} bytes, 0 allocations", bytes.0, bytes.1);
}

#[test]
fn a_million_distinct_keys_allocate_nothing() {
    flood(1_000_000);
}

#[test]
#[ignore = "some seconds: docs/fairness.md says how to run it"]
fn ten_million_distinct_keys_allocate_nothing() {
    flood(10_000_000);
}
