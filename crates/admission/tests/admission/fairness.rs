//! Goal: while a service is short, what has more than its share is demoted, by any sign it shows; no other
//! client ever is. Method: literal crowds in virtual time before a server that serves the demoted last, and
//! random ones beside exact shares.

use flashweir_admission::fairness::{
    Acquaintance, Cause, Fairness, FairnessSettings, RequestSigns, SESSION_STEPS, SIGNS, Sign,
};
use flashweir_core::{Duration, Hasher64, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

/// Cost of each request, microseconds.
const COST_US: u32 = 10_000;

struct World {
    fairness: Fairness,
    hasher: Hasher64,
    rng: Rng,
    now: Instant,
    capacity_rps: f64,
    /// Requests that can be served now; never more than a second's.
    room: f64,
}

/// Sender: a name for the person, values of signs by their names, requests a second, and how many were
/// demoted by each cause.
struct Client {
    person: Option<u64>,
    session_step: u8,
    values: Vec<(Sign, u64)>,
    rate: f64,
    sent: u64,
    served: u64,
    demoted: Vec<Cause>,
}

impl Client {
    fn person(person: u64, rate: f64, values: &[(Sign, u64)]) -> Self {
        Self {
            person: Some(person),
            session_step: SESSION_STEPS,
            values: values.to_vec(),
            rate,
            sent: 0,
            served: 0,
            demoted: Vec::new(),
        }
    }

    fn unproven(rate: f64, values: &[(Sign, u64)]) -> Self {
        Self { person: None, ..Self::person(0, rate, values) }
    }
}

impl World {
    /// A service with this capacity, requests a second.
    fn new(capacity_rps: f64, seed: u64) -> Self {
        Self {
            fairness: Fairness::new(FairnessSettings::default()),
            hasher: Hasher64::new(seed, 5),
            rng: Rng::new(seed),
            now: Instant::ZERO,
            capacity_rps,
            room: 0.0,
        }
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
        self.room = (self.room + self.capacity_rps * duration.as_secs_f64()).min(self.capacity_rps);
    }

    fn offer(&mut self, client: &mut Client) {
        let hash = |what: u64, value: u64| self.hasher.hash(&[&what.to_le_bytes(), &value.to_le_bytes()]);
        let mut values = [0; SIGNS];
        for &(sign, value) in &client.values {
            values[sign as usize] = hash(sign as u64, value) as u32 | 1;
        }
        let is_person = client.person.is_some();
        let known = Acquaintance {
            is_person,
            is_page_view: is_person,
            is_newly_person: is_person && client.session_step == 2 && client.sent.is_multiple_of(4),
            session_step: if is_person { client.session_step } else { 1 },
        };
        let person_key = client.person.map_or(1, |person| hash(99, person));
        let signs = RequestSigns { person_key, values, ..RequestSigns::default() };
        client.sent += 1;
        let cause = self.fairness.offer(self.now, &signs, known, COST_US);
        client.demoted.extend(cause);
        let needed = if cause.is_some() { self.capacity_rps / 4.0 } else { 1.0 };
        if self.room >= needed {
            self.room -= 1.0;
            client.served += 1;
            self.fairness.admit(COST_US);
        }
    }

    /// All send at their rates, at random moments, for this time.
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
            let wait = self.rng.exponential(1.0 / total);
            self.wait(Duration::from_secs_f64(wait));
            let at = self.rng.unit_f64() * total;
            let client = cumulative.partition_point(|sum| *sum <= at).min(clients.len() - 1);
            self.offer(&mut clients[client]);
        }
    }
}

fn forget(clients: &mut [Client]) {
    clients.iter_mut().for_each(|client| (client.sent, client.served, client.demoted) = (0, 0, Vec::new()));
}

const BROWSER: (Sign, u64) = (Sign::TlsFingerprint, 1);

/// 200 people in sessions, each from its own address, together at a third of what the service can do.
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

fn sent(clients: &[Client]) -> u64 {
    clients.iter().map(|client| client.sent).sum()
}

/// Ten thousand addresses, together at three times what the service can do, with the user agents of browsers.
fn crawler(tls: Option<u64>) -> impl Iterator<Item = Client> {
    (0..10_000).map(move |n| {
        let mut values = vec![(Sign::Address, 1_000 + n), (Sign::UserAgent, n % 20)];
        values.extend(tls.map(|tls| (Sign::TlsFingerprint, tls)));
        Client::unproven(300.0 / 10_000.0, &values)
    })
}

/// Found within ten seconds by what its requests have in common, with its own TLS stack or without. No person
/// is demoted at any time, with the worst of five seeds.
#[test]
fn a_crawler_from_ten_thousand_addresses_is_one_client() {
    for (seed, tls) in [(1, Some(2)), (2, Some(2)), (3, None), (4, None), (5, None)] {
        let mut world = World::new(100.0, seed);
        let mut clients = people();
        clients.extend(crawler(tls));
        world.run(&mut clients, 10);
        assert_eq!(demoted(&clients[..200]), 0, "seed {seed}");
        forget(&mut clients);
        world.run(&mut clients, 60);
        assert_eq!(demoted(&clients[..200]), 0, "seed {seed}");
        let caught = demoted(&clients[200..]) as f64 / sent(&clients[200..]) as f64;
        println!("seed {seed}: {caught:.4} of the crawler demoted");
        assert!(caught > 0.999, "seed {seed}: {caught}");
        let causes = clients[200..].iter().flat_map(|client| &client.demoted);
        // By what it cannot or does not rotate enough, never by an address.
        let by_address = causes.filter(|&&cause| cause == Cause::Sign(Sign::Address)).count();
        assert_eq!(by_address, 0, "seed {seed}");
        let served = clients[200..].iter().map(|client| client.served).sum::<u64>();
        assert!(served as f64 > 60.0 * 50.0, "it gets what is left: {served}");
    }
}

/// A crawler with its own TLS stack is demoted by that, and newcomers without a session, who share its user
/// agents, are not.
#[test]
fn newcomers_are_not_demoted_for_what_a_fingerprint_explains() {
    let mut world = World::new(100.0, 7);
    let mut clients = people();
    clients
        .extend((0..200).map(|n| {
            Client::unproven(0.05, &[(Sign::Address, 500 + n), (Sign::UserAgent, n % 20), BROWSER])
        }));
    clients.extend(crawler(Some(2)));
    world.run(&mut clients, 10);
    forget(&mut clients);
    world.run(&mut clients, 60);
    assert_eq!(demoted(&clients[..200]), 0);
    // By chance the excess that the fingerprint leaves is above zero for a moment.
    let newcomers = demoted(&clients[200..400]) as f64 / sent(&clients[200..400]) as f64;
    assert!(newcomers < 0.02, "{newcomers}");
    assert!(demoted(&clients[400..]) as f64 > 0.999 * sent(&clients[400..]) as f64);
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
        assert!(
            demoted(&clients[200..]) as f64 > 0.999 * sent(&clients[200..]) as f64,
            "{addresses} addresses"
        );
    }
}

/// An office of 300 people behind one address is not punished for its size, and neither is a person there
/// without a session yet.
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

/// A crawler that looks like a browser does not drag that browser's users down; a person that is heavy is
/// found as a person.
#[test]
fn people_are_judged_as_people_alone() {
    let mut world = World::new(100.0, 3);
    let mut clients = people();
    clients.push(Client::unproven(300.0, &[(Sign::Address, 1_000), BROWSER]));
    clients.push(Client::person(500, 200.0, &[(Sign::Address, 2_000), BROWSER]));
    world.run(&mut clients, 40);
    assert_eq!(demoted(&clients[..200]), 0);
    assert!(clients[200].demoted.len() as f64 > 0.9 * clients[200].sent as f64);
    assert!(clients[201].demoted.iter().all(|cause| *cause == Cause::Person));
    assert!(clients[201].demoted.len() as f64 > 0.9 * clients[201].sent as f64);
}

/// A crowd of newcomers, at three times what the service can do, of whom some turn into people as they are
/// served, is no crawler.
#[test]
fn a_crowd_of_newcomers_is_not_demoted_beside_those_it_turns_into() {
    let mut world = World::new(100.0, 9);
    let mut clients: Vec<Client> = (0..400)
        .map(|n| Client { session_step: 2, ..Client::person(n, 0.15, &[(Sign::UserAgent, n % 20), BROWSER]) })
        .collect();
    clients.extend(
        (0..2_000).map(|n| {
            Client::unproven(0.12, &[(Sign::Address, 5_000 + n), (Sign::UserAgent, n % 20), BROWSER])
        }),
    );
    world.run(&mut clients, 20);
    forget(&mut clients);
    world.run(&mut clients, 30);
    assert_eq!(demoted(&clients[..400]), 0);
    let newcomers = demoted(&clients[400..]) as f64 / sent(&clients[400..]) as f64;
    println!("{newcomers:.3} of the newcomers' requests demoted");
    assert!(newcomers < 0.01, "{newcomers}");
}

/// Nothing happens while there is room, and all is forgiven when there is.
#[test]
fn while_there_is_room_no_client_is_demoted() {
    let mut world = World::new(10_000.0, 4);
    let mut clients = people();
    clients.push(Client::unproven(300.0, &[(Sign::Address, 1_000), (Sign::TlsFingerprint, 2)]));
    world.room = 10_000.0;
    world.run(&mut clients, 30);
    assert_eq!(demoted(&clients), 0);
    (world.capacity_rps, world.room) = (100.0, 0.0);
    world.run(&mut clients, 10);
    assert!(demoted(&clients[200..]) > 200);
    world.capacity_rps = 10_000.0;
    world.run(&mut clients, 20);
    forget(&mut clients);
    world.run(&mut clients, 10);
    assert_eq!(demoted(&clients), 0);
}

#[test]
fn one_client_alone_is_never_demoted_and_a_long_silence_forgets() {
    for mut alone in [Client::person(1, 1_000.0, &[(Sign::Address, 1)]), Client::unproven(1_000.0, &[])] {
        let mut world = World::new(100.0, 5);
        world.run(std::slice::from_mut(&mut alone), 20);
        assert_eq!(alone.demoted.len(), 0);
    }
    let mut world = World::new(100.0, 5);
    let mut both = vec![Client::unproven(500.0, &[(Sign::Address, 2)]), Client::person(1, 20.0, &[])];
    world.run(&mut both, 20);
    assert!(demoted(&both) > 1_000);
    world.wait(Duration::from_secs(1 << 30));
    forget(&mut both);
    world.offer(&mut both[0]);
    assert_eq!(demoted(&both), 0);
}

/// A client that changes the last 64 bits of its IPv6 address, or its user agent, with each request, is one
/// network still: its address is a /64 to the classifier, and here one value. One that changes all of its
/// signs is a stranger without a session.
#[test]
fn a_client_that_splits_gains_nothing() {
    for all_signs in [false, true] {
        let mut world = World::new(100.0, 13);
        let mut clients = people();
        clients.extend((0..5_000).map(|n| {
            let own = |sign| (sign, if all_signs { 10_000 + n } else { 10_000 });
            let values = [own(Sign::Address), own(Sign::Network), (Sign::UserAgent, 10_000 + n)];
            Client::unproven(300.0 / 5_000.0, &values)
        }));
        world.run(&mut clients, 10);
        forget(&mut clients);
        world.run(&mut clients, 30);
        assert_eq!(demoted(&clients[..200]), 0);
        assert!(demoted(&clients[200..]) as f64 > 0.999 * sent(&clients[200..]) as f64, "{all_signs}");
    }
}

/// Memory does not grow under ten million keys, and no decision allocates but the first.
#[test]
fn ten_million_keys_allocate_nothing_and_take_no_more_memory() {
    let mut fairness = Fairness::new(FairnessSettings::default());
    let mut rng = Rng::new(6);
    let mut offer = |fairness: &mut Fairness, n: u64| {
        let values = std::array::from_fn(|_| if rng.below(4) > 0 { rng.next_u64() as u32 } else { 0 });
        let signs = RequestSigns { person_key: rng.next_u64() | 1, values, ..RequestSigns::default() };
        let known = Acquaintance {
            is_person: n.is_multiple_of(2),
            is_newly_person: n.is_multiple_of(8),
            is_page_view: n.is_multiple_of(4),
            session_step: 1,
        };
        fairness.offer(Instant::from_nanos(n * 100_000), &signs, known, COST_US);
        if n.is_multiple_of(3) {
            fairness.admit(COST_US);
        }
    };
    offer(&mut fairness, 0);
    let memory_bytes = fairness.memory_bytes();
    assert!(memory_bytes <= 300_000, "{memory_bytes}");
    let counted = allocation_counter::measure(|| (1..10_000_000).for_each(|n| offer(&mut fairness, n)));
    assert_eq!(counted.count_total, 0);
    assert_eq!(fairness.memory_bytes(), memory_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// No client at or below 1.15 of the equal share is ever touched. Method: people at constant rates, each
    /// a part of the share.
    #[test]
    fn no_client_within_the_share_is_touched(parts in vec(0.05f64..30.0, 2..40), within in 0.05f64..1.15, seed: u64) {
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
            let before = clock;
            clock = next[first];
            next[first] += 1.0 / (20.0 * parts[first]);
            world.wait(Duration::from_secs_f64(clock - before));
            world.offer(&mut clients[first]);
        }
        for (client, part) in clients.iter().zip(&parts) {
            if *part <= 1.15 {
                prop_assert_eq!(client.demoted.len(), 0, "at {} of the share", part);
            }
        }
    }

    #[test]
    fn any_clock_and_any_cost_make_no_panic(steps in vec((0u64..u64::MAX, 0u64..20, 0u32..u32::MAX, any::<bool>()), 1..300)) {
        let mut fairness = Fairness::new(FairnessSettings::default());
        for (at, client, cost_us, is_admitted) in steps {
            let signs = RequestSigns { person_key: client + 1, values: [client as u32; SIGNS], ..RequestSigns::default() };
            let known = Acquaintance { is_person: client % 2 == 0, ..Acquaintance::default() };
            let now = Instant::from_nanos(at);
            fairness.offer(now, &signs, known, cost_us);
            if is_admitted {
                fairness.admit(cost_us);
            } else {
                fairness.refuse(now);
            }
            let _ = fairness.is_refusing(now);
            let _ = fairness.status(now);
        }
    }
}

/// A worker of a small site: people with pages and assets, a crawler with twenty user agents and five
/// families of URLs.
#[test]
fn a_crawler_is_found_at_a_small_site() {
    let mut world = World::new(27.0, 21);
    let mut clients: Vec<Client> = (0..100)
        .map(|n| {
            Client::person(
                n,
                0.14,
                &[(Sign::Address, n), (Sign::UserAgent, n % 20), (Sign::UrlFamily, n % 5)],
            )
        })
        .collect();
    clients.extend((0..5_000).map(|n| {
        let values = [
            (Sign::Address, 1_000 + n),
            (Sign::Network, n / 20),
            (Sign::UserAgent, n % 20),
            (Sign::UrlFamily, n / 7 % 5),
        ];
        Client::unproven(82.0 / 5_000.0, &values)
    }));
    for second in 0..40 {
        forget(&mut clients);
        world.run(&mut clients, 1);
        let mut causes = [0; Cause::COUNT];
        clients.iter().flat_map(|client| &client.demoted).for_each(|cause| causes[cause.index()] += 1);
        let demoted_part = demoted(&clients[100..]) as f64 / sent(&clients[100..]).max(1) as f64;
        println!(
            "second {second}: {demoted_part:.3} of the crawler demoted, {causes:?}, {:?}",
            world.fairness.status(world.now)
        );
        assert_eq!(demoted(&clients[..100]), 0, "second {second}");
        assert!(second < 10 || demoted_part > 0.9, "second {second}: {demoted_part}");
    }
}
