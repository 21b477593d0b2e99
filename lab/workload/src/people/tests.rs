//! The crowd is decided by the seed, and by nothing that happens to it.

use super::*;
use crate::documents::Popularity;
use crate::documents::goodness_of_fit::{chi_square_fits, kolmogorov_smirnov_fits};
use proptest::prelude::*;
use std::num::NonZeroU32;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn habits() -> Habits {
    Habits {
        patience: Some("exp:4s".parse().unwrap()),
        session: Session { requests: "geometric:5".parse().unwrap(), think: "exp:2s".parse().unwrap() },
        retry: Some(Retry { share: 0.5, pace: "backoff:100ms".parse().unwrap(), ..Retry::default() }),
    }
}

/// Documents that one person asks for, and the time they think after each; they fail `failures` tries of
/// every request.
fn visit(person: &mut Person, popularity: &Popularity, failures: u32) -> Vec<(u32, Duration)> {
    let mut done = Vec::new();
    while let Some(request) = person.next_request() {
        for tries in 1..=failures {
            let _ = person.retry_after(Failure::Refused, tries, Some(tries * SECOND));
        }
        done.push((person.document(request, popularity), person.think()));
        if done.len() == 1000 {
            break;
        }
    }
    done
}

#[test]
fn by_default_everybody_asks_once_and_waits() {
    let mut person = Habits::default().person(1, 0, 9);
    assert_eq!(person.patience(), None);
    assert_eq!(person.next_request(), Some(RequestNumber(0)));
    assert_eq!(person.document(RequestNumber(0), &Popularity::EachNew), 9);
    assert_eq!(person.retry_after(Failure::Refused, 1, None), None);
    assert_eq!(person.think(), Duration::ZERO);
    assert_eq!((person.next_request(), person.next_request()), (None, None));
}

#[test]
fn sessions_have_their_length() {
    let session = |text: &str| Session { requests: text.parse().unwrap(), ..Session::default() };
    let three = Habits { session: session("3"), ..Habits::default() };
    assert_eq!(visit(&mut three.person(1, 0, 0), &Popularity::EachNew, 0).len(), 3);
    let endless = Habits { session: session("endless"), ..Habits::default() };
    assert_eq!(visit(&mut endless.person(1, 0, 0), &Popularity::EachNew, 0).len(), 1000);
    let in_turn = Popularity::InOrder { count: NonZeroU32::new(2).unwrap() };
    let documents: Vec<_> = visit(&mut three.person(1, 0, 1), &in_turn, 0).iter().map(|one| one.0).collect();
    assert_eq!(documents, [1, 0, 1]);
}

/// Neighbouring people share no randomness: patience over many people fits its distribution, as do the
/// documents of first requests and the think times.
#[test]
fn a_crowd_of_people_fits_the_habits_of_its_class() {
    let popularity = Popularity::zipf(1.0, 50).unwrap();
    let weights: f64 = (1..=50).map(|rank| 1.0 / f64::from(rank)).sum();
    let probabilities: Vec<f64> = (1..=50).map(|rank| 1.0 / f64::from(rank) / weights).collect();
    for class in [0, 1, u16::MAX] {
        let (mut patience, mut think, mut requests) = (Vec::new(), Vec::new(), 0);
        let mut counts = vec![0; 50];
        for number in 0..20_000 {
            let mut person = habits().person(77, class, number);
            patience.push(person.patience().unwrap().as_secs_f64());
            for (document, pause) in visit(&mut person, &popularity, 0) {
                counts[document as usize] += 1;
                think.push(pause.as_secs_f64());
                requests += 1;
            }
        }
        assert!(kolmogorov_smirnov_fits(&patience, |seconds| 1.0 - (-seconds / 4.0).exp()), "{class}");
        assert!(kolmogorov_smirnov_fits(&think, |seconds| 1.0 - (-seconds / 2.0).exp()), "{class}");
        assert!(!kolmogorov_smirnov_fits(&think, |seconds| 1.0 - (-seconds / 2.1).exp()), "{class}");
        assert!(chi_square_fits(&counts, &probabilities), "{class}");
        assert!((f64::from(requests) / 20_000.0 - 5.0).abs() < 0.15, "{class}: {requests}");
    }
}

/// One value drawn for a person says nothing about another, nor about the same thing of the next person, of
/// the other class or of the other seed.
#[test]
fn draws_of_different_purposes_and_people_are_not_alike() {
    let habits = Habits { retry: Some(Retry::default()), ..habits() };
    let popularity = Popularity::zipf(0.0, 1_000_000).unwrap();
    let people = |seed, class, first: u64| -> Vec<[f64; 5]> {
        let numbers = first..first + 20_000;
        numbers.map(|number| drawn_for(&habits, &popularity, seed, class, number)).collect()
    };
    let crowd = people(5, 0, 0);
    let others = [crowd.clone(), people(5, 0, 1), people(5, 1, 0), people(6, 0, 0)];
    for (other_number, other) in others.iter().enumerate() {
        for (one, two) in (0..25).map(|pair| (pair / 5, pair % 5)) {
            if other_number == 0 && one == two {
                continue;
            }
            let pairs = crowd.iter().zip(other).map(|(person, next)| (person[one], next[two]));
            // Four standard deviations of the correlation of independent draws.
            let found = correlation(&pairs.collect::<Vec<_>>());
            assert!(found.abs() < 4.0 / f64::sqrt(20_000.0), "{found}: {one} {two} of crowd {other_number}");
        }
    }
}

/// Patience, length of the session, thought after the first request, document of the second, pause before the
/// second is tried again.
fn drawn_for(habits: &Habits, popularity: &Popularity, seed: u64, class: u16, number: u64) -> [f64; 5] {
    let mut person = habits.person(seed, class, number);
    let length = std::iter::from_fn(|| person.next_request()).count();
    let session = Session { requests: SessionLength::Endless, ..habits.session };
    let mut person = Habits { session, ..*habits }.person(seed, class, number);
    person.next_request();
    let think = person.think();
    let document = person.next_request().map(|request| person.document(request, popularity));
    let pause = person.retry_after(Failure::Refused, 1, None);
    [
        person.patience().unwrap().as_secs_f64(),
        length as f64,
        think.as_secs_f64(),
        f64::from(document.unwrap()),
        pause.unwrap().as_secs_f64(),
    ]
}

/// Pearson's correlation.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (one, other) =
        pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / count, sum.1 + pair.1 / count));
    let centred = pairs.iter().map(|pair| (pair.0 - one, pair.1 - other));
    let (product, one_square, other_square) = centred.fold((0.0, 0.0, 0.0), |sum, (one, other)| {
        (sum.0 + one * other, sum.1 + one * one, sum.2 + other * other)
    });
    product / f64::sqrt(one_square * other_square)
}

proptest! {
    /// Events during a visit change nothing of what the person asks for or how long they think.
    #[test]
    fn a_visit_does_not_depend_on_its_failures(seed: u64, class: u16, number: u64, failures in 1u32..6) {
        let popularity = Popularity::zipf(0.8, 1000).unwrap();
        let mut lucky = habits().person(seed, class, number);
        let mut unlucky = lucky.clone();
        prop_assert_eq!(lucky.patience(), unlucky.patience());
        prop_assert_eq!(visit(&mut lucky, &popularity, 0), visit(&mut unlucky, &popularity, failures));
        // Nor on whether the class retries at all.
        let mut stoic = Habits { retry: None, ..habits() }.person(seed, class, number);
        prop_assert_eq!(
            visit(&mut habits().person(seed, class, number), &popularity, 3),
            visit(&mut stoic, &popularity, 0)
        );
    }

    /// Retries depend on the person, the request and the try, not on what was asked before.
    #[test]
    fn a_retry_does_not_depend_on_earlier_ones(seed: u64, number: u64, tries in 1u32..3) {
        let session = Session { requests: SessionLength::Endless, ..habits().session };
        let mut one = Habits { session, ..habits() }.person(seed, 0, number);
        one.next_request();
        let mut other = one.clone();
        for _ in 0..tries {
            let _ = (one.retry_after(Failure::Broken, 1, None), one.think());
        }
        let retried = one.retry_after(Failure::TimedOut, tries, None);
        prop_assert_eq!(retried, other.retry_after(Failure::Refused, tries, None));
        prop_assert!(retried.is_none_or(|wait| wait <= Duration::from_millis(200)));
        other.next_request();
        // Another request has other draws; to be equal, both must have been given up.
        let again = other.retry_after(Failure::Refused, tries, None);
        prop_assert!(again.is_none() || again != retried);
    }

    #[test]
    fn the_same_person_comes_again_from_the_same_seed(seed: u64, class: u16, number: u64) {
        let again = || visit(&mut habits().person(seed, class, number), &Popularity::EachNew, 0);
        prop_assert_eq!(again(), again());
    }
}
