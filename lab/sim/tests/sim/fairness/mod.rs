//! Goal: people in sessions are served beside any crawler, which gets what is left, and no client is
//! demoted in quiet hours. Method: a small site with people and a crawler, through the gateway's own
//! stages; seeds that nothing was tuned on; the worst counts.

mod plant;
mod quiet;

use flashweir_core::Duration;
use plant::{Found, Load, Protection, crawl};

/// These, or those of the environment variable `SEEDS`, like `201..230`.
#[expect(clippy::disallowed_methods, reason = "which seeds to run is said by who runs them")]
fn seeds() -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var("SEEDS") else { return 101..=106 };
    let ends = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..=to.parse().ok()?));
    ends.unwrap_or_else(|| panic!("SEEDS={text}: expected two numbers, like 201..230"))
}

const FOUND_WITHIN_S: u64 = 10;
const DEMOTED_MAX: Duration = Duration::from_secs(1);

const CRAWLER: Load = Load {
    people: 200,
    is_office: false,
    addresses: 10_000,
    times: 3.0,
    has_tls: false,
    newcomers_per_s: 0.0,
};

fn worst(load: Load, protection: Protection) -> Found {
    let all = seeds().map(|seed| crawl(load, protection, seed).0);
    all.min_by(|one, other| one.people_in_time.total_cmp(&other.people_in_time)).expect("a seed")
}

/// The worst seed under each protection, and the bars for all seeds.
fn check(name: &str, load: Load, in_time_min: f64) {
    for protection in [Protection::None, Protection::Sentry] {
        println!("{name}, {protection:?}: {:?}", worst(load, protection));
    }
    let all: Vec<(u64, Found)> =
        seeds().map(|seed| (seed, crawl(load, Protection::Default, seed).0)).collect();
    all.iter().for_each(|(seed, found)| println!("{name}, seed {seed}: {found:?}"));
    for (seed, found) in all {
        assert!(found.people_in_time >= in_time_min, "{name}, seed {seed}: {found:?}");
        assert!(found.useful >= 0.98, "{name}, seed {seed}: {found:?}");
        assert!(found.longest <= DEMOTED_MAX, "{name}, seed {seed}: {found:?}");
        assert!(
            found.found_after_s.is_some_and(|after| after <= FOUND_WITHIN_S),
            "{name}, seed {seed}: {found:?}"
        );
    }
}

#[test]
fn people_are_served_beside_a_crawler_of_ten_thousand_addresses() {
    check("10,000 addresses at 3x", CRAWLER, 0.98);
}

#[test]
fn people_are_served_beside_a_crawler_of_one_address() {
    check("one address at 10x", Load { addresses: 1, times: 10.0, ..CRAWLER }, 0.98);
}

#[test]
fn people_are_served_beside_a_crawler_of_a_hundred_addresses() {
    check("100 addresses at 3x", Load { addresses: 100, ..CRAWLER }, 0.98);
}

#[test]
fn an_office_of_300_people_is_served_beside_a_crawler() {
    check("an office of 300", Load { people: 300, is_office: true, ..CRAWLER }, 0.97);
}

/// The crawler's TLS handshakes differ from browsers', so people who come during the crawl are served as
/// well.
#[test]
fn newcomers_are_served_where_a_fingerprint_tells_the_crawler_from_them() {
    let load = Load { has_tls: true, newcomers_per_s: 0.5, people: 150, ..CRAWLER };
    for seed in seeds() {
        let [with, without] =
            [true, false].map(|has_tls| crawl(Load { has_tls, ..load }, Protection::Default, seed).0);
        println!("seed {seed}: with TLS {with:?}, without {without:?}");
        assert!(with.newcomers_in_time >= 0.9, "seed {seed}: {with:?}");
        assert!(with.people_in_time >= 0.98, "seed {seed}: {with:?}");
        assert!(without.people_in_time >= 0.95, "seed {seed}: {without:?}");
    }
}
