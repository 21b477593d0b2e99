//! Goal: while a service is short, what has more than its share is demoted, by any sign it shows; no other client ever is. Method:
//! literal crowds in virtual time, and random ones beside exact shares.

use flashweir_admission::fairness::{Cause, Fairness, FairnessSettings, RequestSigns, SIGNS, Sign, Tier};
use flashweir_core::{Duration, Hasher64, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

/// What each request takes, microseconds.
const COST_US: u32 = 10_000;

struct World {
    fairness: Fairness,
    hasher: Hasher64,
    rng: Rng,
    now: Instant,
    capacity_us_per_s: f64,
    is_short: bool,
}

/// Who sends: a name for the person, values of signs by their names, requests a second, and how many were demoted by each cause.
struct Client {
    person: Option<u64>,
    values: Vec<(Sign, u64)>,
    rate: f64,
    sent: u64,
    demoted: Vec<Cause>,
}

impl Client {
    fn person(person: u64, rate: f64, values: &[(Sign, u64)]) -> Self {
        Self { person: Some(person), values: values.to_vec(), rate, sent: 0, demoted: Vec::new() }
    }

    fn unproven(rate: f64, values: &[(Sign, u64)]) -> Self {
        Self { person: None, ..Self::person(0, rate, values) }
    }
}

impl World {
    /// A service with this capacity, requests a second.
    fn new(capacity_rps: f64, seed: u64) -> Self {
        Self {
            fairness: Fairness::new(FairnessSettings::default(), Instant::ZERO),
            hasher: Hasher64::new(seed, 5),
            rng: Rng::new(seed),
            now: Instant::ZERO,
            capacity_us_per_s: capacity_rps * f64::from(COST_US),
            is_short: true,
        }
    }

    fn offer(&mut self, client: &mut Client) {
        let hash = |what: u64, value: u64| self.hasher.hash(&[&what.to_le_bytes(), &value.to_le_bytes()]);
        let mut values = [None; SIGNS];
        for &(sign, value) in &client.values {
            values[sign as usize] = Some(hash(sign as u64, value));
        }
        let signs = RequestSigns { person: client.person.map(|person| hash(99, person)), values };
        client.sent += 1;
        if let Tier::Scavenger(cause) = self.fairness.offer(self.now, &signs, COST_US) {
            client.demoted.push(cause);
        }
    }

    /// Everybody sends at their rates, at random moments, for so many seconds.
    fn run(&mut self, clients: &mut [Client], seconds: u64) {
        let total: f64 = clients.iter().map(|client| client.rate).sum();
        let cumulative: Vec<f64> = clients
            .iter()
            .scan(0.0, |sum, client| {
                *sum += client.rate;
                Some(*sum)
            })
            .collect();
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.now += Duration::from_secs_f64(self.rng.exponential(1.0 / total));
            let at = self.rng.unit_f64() * total;
            let client = cumulative.partition_point(|sum| *sum <= at).min(clients.len() - 1);
            self.offer(&mut clients[client]);
            self.fairness.advance(self.now, self.capacity_us_per_s, self.is_short);
        }
    }
}

fn forget(clients: &mut [Client]) {
    clients.iter_mut().for_each(|client| (client.sent, client.demoted) = (0, Vec::new()));
}

const BROWSER: (Sign, u64) = (Sign::TlsFingerprint, 1);

/// 200 people in sessions, each from an address of its own, together at a third of what the service can do.
fn people() -> Vec<Client> {
    (0..200)
        .map(|person| {
            let values = [(Sign::Address, person), (Sign::UserAgent, person % 20), BROWSER];
            Client::person(person, 100.0 / 600.0, &values)
        })
        .collect()
}

fn demoted(clients: &[Client]) -> usize {
    clients.iter().map(|client| client.demoted.len()).sum()
}

/// A crawler from ten thousand addresses, together at three times what the service can do, with the user agents of browsers: found within
/// ten seconds by what its requests have in common. No person is demoted at any time, with the worst of five seeds.
#[test]
fn a_crawler_from_ten_thousand_addresses_is_one_client() {
    for seed in 1..=5 {
        let mut world = World::new(100.0, seed);
        let mut clients = people();
        clients.extend((0..10_000).map(|n| {
            let values = [(Sign::Address, 1_000 + n), (Sign::UserAgent, n % 20), (Sign::TlsFingerprint, 2)];
            Client::unproven(300.0 / 10_000.0, &values)
        }));
        world.run(&mut clients, 10);
        assert_eq!(demoted(&clients[..200]), 0, "seed {seed}");
        forget(&mut clients);
        world.run(&mut clients, 60);
        assert_eq!(demoted(&clients[..200]), 0, "seed {seed}");
        let sent: u64 = clients[200..].iter().map(|client| client.sent).sum();
        let caught = demoted(&clients[200..]) as f64 / sent as f64;
        println!("seed {seed}: {caught:.4} of the crawler demoted");
        assert!(caught > 0.999, "seed {seed}: {caught}");
        let causes = clients[200..].iter().flat_map(|client| &client.demoted);
        // By what it cannot or does not rotate enough, never by an address.
        let by_address = causes.filter(|&&cause| cause == Cause::Sign(Sign::Address)).count();
        assert_eq!(by_address, 0, "seed {seed}");
    }
}

/// The same from one address with ten times what the service can do, and from a hundred with three times.
#[test]
fn a_crawler_from_one_address_and_from_a_hundred_is_found() {
    for (addresses, times) in [(1, 10.0), (100, 3.0)] {
        let mut world = World::new(100.0, 11);
        let mut clients = people();
        clients.extend((0..addresses).map(|n| {
            let values = [(Sign::Address, 1_000 + n), (Sign::UserAgent, n % 20), (Sign::TlsFingerprint, 2)];
            Client::unproven(100.0 * times / addresses as f64, &values)
        }));
        world.run(&mut clients, 10);
        assert_eq!(demoted(&clients[..200]), 0);
        forget(&mut clients);
        world.run(&mut clients, 30);
        assert_eq!(demoted(&clients[..200]), 0);
        let sent: u64 = clients[200..].iter().map(|client| client.sent).sum();
        assert!(demoted(&clients[200..]) as f64 > 0.999 * sent as f64, "{addresses} addresses");
    }
}

/// An office of 300 people behind one address is not punished for its size, and neither is a person there without a session yet.
#[test]
fn an_office_behind_one_address_has_a_share_for_each_of_its_people() {
    for seed in 1..=5 {
        let mut world = World::new(100.0, seed);
        let office = [(Sign::Address, 1), BROWSER];
        let mut clients: Vec<Client> = (0..300).map(|person| Client::person(person, 0.2, &office)).collect();
        clients.push(Client::unproven(2.0, &office));
        clients.push(Client::unproven(300.0, &[(Sign::Address, 2), (Sign::TlsFingerprint, 2)]));
        world.run(&mut clients, 40);
        assert_eq!(demoted(&clients[..301]), 0, "seed {seed}");
        assert!(clients[301].demoted.len() as f64 > 0.9 * clients[301].sent as f64, "seed {seed}");
    }
}

/// A crawler that looks like a browser does not drag that browser's users down; a person that is heavy is found as a person.
#[test]
fn people_are_judged_as_people_alone() {
    let mut world = World::new(100.0, 3);
    let mut clients = people();
    clients.push(Client::unproven(300.0, &[(Sign::Address, 1_000), BROWSER]));
    clients.push(Client::person(500, 30.0, &[(Sign::Address, 2_000), BROWSER]));
    world.run(&mut clients, 40);
    assert_eq!(demoted(&clients[..200]), 0);
    assert!(clients[200].demoted.len() as f64 > 0.9 * clients[200].sent as f64);
    assert!(clients[201].demoted.iter().all(|cause| *cause == Cause::Person));
    assert!(clients[201].demoted.len() as f64 > 0.9 * clients[201].sent as f64);
}

/// Nothing happens while there is room, and all is forgiven at once when there is.
#[test]
fn while_there_is_room_nobody_is_demoted() {
    let mut world = World::new(100.0, 4);
    world.is_short = false;
    let mut clients = people();
    clients.push(Client::unproven(300.0, &[(Sign::Address, 1_000), (Sign::TlsFingerprint, 2)]));
    world.run(&mut clients, 30);
    assert_eq!(demoted(&clients), 0);
    world.is_short = true;
    world.run(&mut clients, 1);
    assert!(demoted(&clients[200..]) > 200);
    world.is_short = false;
    world.run(&mut clients, 1);
    forget(&mut clients);
    world.run(&mut clients, 10);
    assert_eq!(demoted(&clients), 0);
}

#[test]
fn one_client_alone_is_never_demoted_and_a_long_silence_forgets() {
    let mut world = World::new(100.0, 5);
    let mut alone = [Client::person(1, 1_000.0, &[(Sign::Address, 1)])];
    world.run(&mut alone, 20);
    assert_eq!(demoted(&alone), 0);
    let mut both = vec![Client::unproven(500.0, &[(Sign::Address, 2)]), Client::person(1, 1.0, &[])];
    world.run(&mut both, 20);
    assert!(demoted(&both) > 1_000);
    world.now += Duration::from_secs(1 << 30);
    world.fairness.advance(world.now, world.capacity_us_per_s, true);
    forget(&mut both);
    world.offer(&mut both[0]);
    assert_eq!(demoted(&both), 0);
}

#[test]
fn a_decision_allocates_nothing() {
    let mut world = World::new(100.0, 6);
    let mut rng = Rng::new(6);
    let counted = allocation_counter::measure(|| {
        for n in 0..1_000_000_u64 {
            let now = Instant::from_nanos(n * 100_000);
            let values = core::array::from_fn(|_| (rng.below(4) > 0).then(|| rng.next_u64()));
            let person = (rng.below(2) == 0).then(|| rng.next_u64());
            world.fairness.offer(now, &RequestSigns { person, values }, COST_US);
            world.fairness.advance(now, 1e6, true);
        }
    });
    assert_eq!(counted.count_total, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Nobody at or below 1.15 of the fair share is ever touched. Method: people at constant rates, each a part of the share.
    #[test]
    fn nobody_within_the_share_is_touched(parts in vec(0.05f64..30.0, 2..40), within in 0.05f64..1.15, seed: u64) {
        let mut parts = parts;
        parts.push(within);
        let mut world = World::new(20.0 * parts.len() as f64, seed);
        let mut clients: Vec<Client> =
            (0..).zip(&parts).map(|(n, part)| Client::person(n, 20.0 * part, &[(Sign::Address, n)])).collect();
        // In turn, at exact intervals: a rate is what it is said to be in every horizon.
        let mut next: Vec<f64> = parts.iter().map(|part| world.rng.unit_f64() / (20.0 * part)).collect();
        let mut clock = 0.0;
        while clock < 15.0 {
            let first = (0..next.len()).min_by(|&one, &other| next[one].total_cmp(&next[other])).unwrap();
            clock = next[first];
            next[first] += 1.0 / (20.0 * parts[first]);
            world.now = Instant::from_nanos((clock * 1e9) as u64);
            world.offer(&mut clients[first]);
            world.fairness.advance(world.now, world.capacity_us_per_s, true);
        }
        for (client, part) in clients.iter().zip(&parts) {
            if *part <= 1.15 {
                prop_assert_eq!(client.demoted.len(), 0, "at {} of the share", part);
            } else if *part > 2.0 {
                prop_assert!(!client.demoted.is_empty(), "at {} of the share", part);
            }
        }
    }

    #[test]
    fn any_clock_keeps_the_share_in_range(steps in vec((0u64..u64::MAX, 0u64..20, 0u32..u32::MAX, any::<bool>()), 1..300)) {
        let mut world = World::new(100.0, 1);
        for (at, client, cost_us, is_short) in steps {
            let hash = world.hasher.hash(&[&client.to_le_bytes()]);
            let signs = RequestSigns { person: (client % 2 == 0).then_some(hash), values: [Some(hash); SIGNS] };
            world.fairness.offer(Instant::from_nanos(at), &signs, cost_us);
            world.fairness.advance(Instant::from_nanos(at), 1e6, is_short);
            prop_assert!(world.fairness.share_us_per_s() > 0.0);
        }
    }
}
