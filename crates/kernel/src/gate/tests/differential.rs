//! The gate in C against the gate in Rust: the same plans, packets and times must give the same verdicts and
//! counts.
//!
//! The Rust side is made of pure parts (the buckets of `flashweir_admission`, the table of refused attempts);
//! what only the kernel has (preferred networks, ranks, purged sources, silence) is said here a second time,
//! in the plainest way.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::net::IpAddr;
use std::sync::Arc;

use flashweir_admission::flash_crowd::{CeilingPriority, Limit, Plan};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::tiered_bucket::{TierCeiling, TieredBucket};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_core::limits::REFUSED_ATTEMPTS;
use flashweir_core::{Instant, Rng, Verdict};
use flashweir_testkit::packet::flag;
use siphasher::sip::SipHasher13;

use super::*;

/// The hash of `bpf/hash.h`, by an independent SipHash.
fn attempt_key(gate: &KernelGate, segment: &Segment) -> u64 {
    let [first, second] = gate.control.attempts_key;
    let mut hasher = SipHasher13::new_with_keys(first, second);
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    hasher.write(&octets(segment.source.ip()));
    hasher.write(&octets(segment.destination.ip()));
    hasher.write(&segment.source.port().to_be_bytes());
    hasher.write(&segment.destination.port().to_be_bytes());
    hasher.write(&segment.sequence.to_le_bytes());
    hasher.finish()
}

/// One service of the model.
#[derive(Default)]
struct ModelService {
    everybody: Option<TieredBucket>,
    preferred: Option<TokenBucket>,
    plan: ServicePlan,
    counts: GateCounts,
}

/// Model of the kernel's gate.
struct Model {
    attempts: Arc<RefusedAttempts>,
    services: [ModelService; SERVICES],
    preferred: Vec<(IpAddr, u8)>,
    ranks: Ranks,
    purged_until: HashMap<IpAddr, u64>,
    beat_ns: u64,
    closes: bool,
}

/// They listen on ports one after the other.
const SERVICES: usize = 3;

impl ModelService {
    fn apply(&mut self, now: Instant, plan: ServicePlan) {
        let tier = |ceiling: &Ceiling| TierCeiling { rate: ceiling.rate, burst: ceiling.burst.into() };
        let tiers: Vec<_> = plan.tiers.ceilings().iter().map(tier).collect();
        self.everybody = match self.everybody.take() {
            _ if tiers.is_empty() => None,
            Some(mut bucket) => {
                bucket.set_ceilings(now, &tiers);
                Some(bucket)
            }
            None => Some(TieredBucket::empty(now, &tiers)),
        };
        let before = self.preferred.take();
        self.preferred = plan.preferred.map(|ceiling| {
            let mut bucket = before.unwrap_or_else(|| TokenBucket::empty(now, Rate::ZERO, 1));
            bucket.set_rate(now, ceiling.rate, ceiling.burst.into());
            bucket
        });
        self.plan = plan;
    }
}

/// The address of IPv4, the /64 of IPv6.
fn subscriber(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => std::net::Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Model {
    fn prefers(&self, source: IpAddr) -> bool {
        self.preferred.iter().any(|&(network, bits)| contains(network, bits, source))
    }

    fn judge(&mut self, now: Instant, segment: &Segment, attempt: u64) -> u32 {
        if segment.flags & (flag::SYN | flag::ACK | flag::RST) != flag::SYN {
            return PASS;
        }
        let index = usize::from(segment.destination.port() - address(SERVER).port());
        let now_ns = now.as_nanos();
        let source = segment.source.ip();
        let retry = self.attempts.is_retry(now, attempt);
        let prefers = self.prefers(source);
        let silent = !self.closes && now_ns > self.beat_ns + 3 * SECOND_NS;
        let plan = self.services[index].plan;
        let open = silent || plan.refusal == ExcessTreatment::Pass;
        let purged =
            !open && self.purged_until.get(&subscriber(source)).is_some_and(|&until_ns| now_ns < until_ns);
        let rank = rank_of(&self.ranks, source, segment.destination.port(), segment.traffic_class);
        let payer = &mut self.services[plan.charged_to.unwrap_or(index)];
        let mut admits = || match prefers {
            true => payer.preferred.as_mut().is_none_or(|bucket| bucket.admit(now)),
            false => payer.everybody.as_mut().is_none_or(|bucket| bucket.admit(now, rank)),
        };
        let fits = open || !purged && admits();
        let counts = &mut self.services[index].counts;
        counts.offered += 1;
        counts.unique_offered += u64::from(!retry && (fits || plan.shadow || !purged));
        counts.preferred_offered += u64::from(prefers);
        counts.tiers[rank].offered += u64::from(!prefers);
        if fits || plan.shadow {
            counts.admitted += 1;
            counts.preferred_admitted += u64::from(prefers);
            counts.tiers[rank].admitted += u64::from(!prefers);
            counts.failed_open += u64::from(silent);
            counts.shadowed += u64::from(!fits);
            if retry {
                self.attempts.forget(attempt);
            }
            return PASS;
        }
        self.attempts.remember(now, attempt);
        match plan.refusal {
            _ if purged => counts.purged += 1,
            ExcessTreatment::Reset => {
                counts.reset += 1;
                return SEND_BACK;
            }
            ExcessTreatment::Answer => {
                counts.answered += 1;
                return SEND_BACK;
            }
            ExcessTreatment::Drop | ExcessTreatment::Pass => counts.dropped += 1,
        }
        DROP
    }
}

/// The rank of a connection's network, else of its mark, else of its port, else the default.
pub(super) fn rank_of(ranks: &Ranks, source: IpAddr, port: u16, traffic_class: u8) -> usize {
    let networks = ranks.networks.iter().filter(|&&(network, bits, _)| contains(network, bits, source));
    let by_network = networks.max_by_key(|(_, bits, _)| *bits).map(|&(_, _, rank)| rank);
    let mark = traffic_class >> 2;
    let by_mark = || ranks.marks.iter().rev().find(|(of, _)| *of == mark).map(|&(_, rank)| rank);
    let by_port = || ranks.ports.iter().find(|(of, _)| *of == port).map(|&(_, rank)| rank);
    by_network.or_else(by_mark).or_else(by_port).unwrap_or(ranks.default_rank).into()
}

fn contains(network: IpAddr, bits: u8, source: IpAddr) -> bool {
    match (network, source) {
        (IpAddr::V4(network), IpAddr::V4(source)) => {
            (network.to_bits() ^ source.to_bits()).leading_zeros() >= bits.into()
        }
        (IpAddr::V6(network), IpAddr::V6(source)) => {
            (network.to_bits() ^ source.to_bits()).leading_zeros() >= bits.into()
        }
        _ => false,
    }
}

/// Mostly nothing, sometimes long: what makes buckets empty, fill, and overflow.
fn step_ns(rng: &mut Rng) -> u64 {
    let most = [1, 1_000, 1_000_000, 40_000_000, SECOND_NS, 100 * SECOND_NS][rng.below(6) as usize];
    rng.below(most + 1)
}

fn random_ceiling(rng: &mut Rng) -> Ceiling {
    let rates = [0, 1, 999, 1_000, 33_333, 1_000_000, 7_000_000_001, 1_000_000_000_000];
    let rate = Rate::from_milli(rates[rng.below(8) as usize]);
    let burst = [0, 1, 2, 10, 1_000, 1_000_000, u32::MAX][rng.below(7) as usize];
    Ceiling { rate, burst }
}

/// Every number of tiers, most often few.
fn random_tiers(rng: &mut Rng) -> Tiers {
    let count = [0, 1, 2, 3, rng.below(TIERS as u64 + 1)][rng.below(5) as usize];
    let mut ceilings: Vec<_> = (0..count).map(|_| random_ceiling(rng)).collect();
    // Bursts of one size: else one layer often hides all others.
    if rng.below(2) == 0 {
        ceilings.iter_mut().for_each(|ceiling| ceiling.burst = 1 + ceiling.burst % 8);
    }
    Tiers::new(&ceilings).expect("room")
}

fn random_ranks(rng: &mut Rng) -> Ranks {
    let rank = |rng: &mut Rng| rng.below(TIERS as u64) as u8;
    let mut networks: Vec<(IpAddr, u8, u8)> = Vec::new();
    for _ in 0..rng.below(5) {
        let source = random_source(rng).ip();
        let bits = rng.below(if source.is_ipv4() { 33 } else { 129 }) as u8;
        let is_known = |&(network, of, _): &(IpAddr, u8, u8)| of == bits && contains(network, bits, source);
        if !networks.iter().any(is_known) {
            networks.push((source, bits, rank(rng)));
        }
    }
    let marks = (0..rng.below(3)).map(|_| ([0, 10, 46, 63][rng.below(4) as usize], rank(rng))).collect();
    let ports = (0..SERVICES as u16).filter(|_| rng.below(2) == 0).collect::<Vec<_>>();
    let ports = ports.into_iter().map(|port| (address(SERVER).port() + port, rank(rng))).collect();
    Ranks { networks, marks, ports, default_rank: rank(rng) }
}

fn random_plan(rng: &mut Rng) -> ServicePlan {
    let refusal =
        [ExcessTreatment::Pass, ExcessTreatment::Drop, ExcessTreatment::Reset, ExcessTreatment::Answer]
            [rng.below(4) as usize];
    ServicePlan {
        charged_to: (rng.below(2) == 0).then(|| rng.below(SERVICES as u64) as usize),
        tiers: random_tiers(rng),
        preferred: (rng.below(4) > 0).then(|| random_ceiling(rng)),
        refusal,
        shadow: rng.below(8) == 0,
        retry_after: Duration::from_secs(10),
        reason: [Reason::FlashCrowd, Reason::Capacity][rng.below(2) as usize],
    }
}

fn random_source(rng: &mut Rng) -> SocketAddr {
    let port = 40_000 + rng.below(4) as u16;
    let last = rng.below(8) as u8;
    if rng.below(3) == 0 {
        SocketAddr::new([0x2001, 0xdb8, last.into(), 0, 0, 0, 0, 7].into(), port)
    } else {
        SocketAddr::new([198, 51, last, 7].into(), port)
    }
}

/// Attempts of one client that share two places of the table of refused attempts, by their sequence numbers.
fn crowded(gate: &KernelGate) -> Vec<u32> {
    let mut pairs: HashMap<u64, Vec<u32>> = HashMap::new();
    for sequence in 0.. {
        let pair = attempt_key(gate, &Segment { sequence, ..syn() }) % REFUSED_ATTEMPTS as u64 / 2;
        let attempts = pairs.entry(pair).or_default();
        attempts.push(sequence);
        if attempts.len() == 5 {
            return attempts.clone();
        }
    }
    unreachable!("places run out before numbers do")
}

/// A segment to one of the `services`; those that share places of the table go to the first.
fn random_segment(rng: &mut Rng, crowded: &[u32], services: usize) -> Segment {
    if rng.below(3) == 0 {
        return Segment { sequence: crowded[rng.below(5) as usize], ..syn() };
    }
    let source = random_source(rng);
    let mut server = address(if source.is_ipv4() { SERVER } else { SERVER_V6 });
    server.set_port(server.port() + rng.below(services as u64) as u16);
    let sequence = rng.below(3) as u32;
    let flags = if rng.below(8) == 0 { rng.below(64) as u8 } else { flag::SYN };
    let traffic_class = [0, 0, 10, 46, 63][rng.below(5) as usize] << 2 | rng.below(4) as u8;
    Segment { sequence, flags, traffic_class, ..Segment::syn(source, server) }
}

/// Goal: no difference over any sequence. Method: each seed turns some operations off and runs a few
/// thousand others.
#[test]
fn the_gate_in_c_is_the_gate_in_rust() {
    let Some(mut gate) = require_closed("differential test of the gate", ExcessTreatment::Drop) else {
        return;
    };
    let endpoints = |index: usize| {
        [SERVER, SERVER_V6].map(address).map(|at| SocketAddr::new(at.ip(), at.port() + index as u16)).to_vec()
    };
    let first = gate.services[0].clone();
    let services = (0..SERVICES).map(|index| Service { endpoints: endpoints(index), ..first.clone() });
    gate.set_services(services.collect()).expect("services");
    let mut now_ns = SECOND_NS;
    gate.control.attempts_key = [1, 2];
    let crowded = crowded(&gate);
    // As the kernel's, one table for all seeds.
    let attempts = Arc::new(RefusedAttempts::default());
    for seed in 0..24 {
        now_ns = compare(&mut gate, &attempts, &crowded, seed, now_ns);
    }
}

fn compare(
    gate: &mut KernelGate,
    attempts: &Arc<RefusedAttempts>,
    crowded: &[u32],
    seed: u64,
    begin_ns: u64,
) -> u64 {
    let mut rng = Rng::new(seed);
    // Each seed starts without ceilings, and long after the one before.
    let mut now_ns = begin_ns + 200 * SECOND_NS;
    gate.tell(now_ns);
    gate.apply(&[ServicePlan::default(); SERVICES]).expect("a plan");
    gate.prefer(&[]).expect("no networks");
    gate.rank(Ranks::default()).expect("no ranks");
    gate.fail_closed(false).expect("a flag");
    let before = gate.counters().expect("counters");
    let mut model = Model {
        attempts: Arc::clone(attempts),
        services: Default::default(),
        preferred: Vec::new(),
        ranks: Ranks::default(),
        purged_until: HashMap::new(),
        beat_ns: now_ns,
        closes: false,
    };
    let odds: [u64; 6] = std::array::from_fn(|_| [0, 1, 5, 40][rng.below(4) as usize]);
    for step in 0..4_000 {
        let roll = rng.below(1_000);
        let mut bound = 0;
        let chosen = odds.iter().position(|odd| {
            bound += odd;
            roll < bound
        });
        let now = Instant::from_nanos(now_ns);
        match chosen {
            Some(0) => {
                let plans: [_; SERVICES] = std::array::from_fn(|_| random_plan(&mut rng));
                gate.apply(&plans).expect("a plan");
                model.services.iter_mut().zip(plans).for_each(|(service, plan)| service.apply(now, plan));
            }
            Some(1) => {
                gate.beat().expect("a beat");
                model.beat_ns = now_ns;
            }
            Some(2) => {
                let source = random_source(&mut rng).ip();
                let during_ns = step_ns(&mut rng);
                gate.purge(source, Duration::from_nanos(during_ns)).expect("a purge");
                model.purged_until.insert(subscriber(source), now_ns + during_ns);
            }
            Some(3) => {
                let network = random_source(&mut rng).ip();
                let bits = rng.below(if network.is_ipv4() { 33 } else { 129 }) as u8;
                model.preferred = if rng.below(4) == 0 { Vec::new() } else { vec![(network, bits)] };
                gate.prefer(&model.preferred).expect("networks");
            }
            Some(4) => {
                model.closes = rng.below(2) == 0;
                gate.fail_closed(model.closes).expect("a flag");
            }
            Some(5) => {
                model.ranks = random_ranks(&mut rng);
                gate.rank(model.ranks.clone()).expect("ranks");
            }
            _ => {
                now_ns += step_ns(&mut rng);
                gate.tell_only(now_ns);
                let segment = random_segment(&mut rng, crowded, SERVICES);
                let expected =
                    model.judge(Instant::from_nanos(now_ns), &segment, attempt_key(gate, &segment));
                assert_eq!(gate.verdict(&segment), expected, "seed {seed}, step {step}: {segment:?}");
            }
        }
    }
    let after = gate.counters().expect("counters");
    for (index, service) in model.services.iter().enumerate() {
        assert_eq!(difference(after[index], before[index]), service.counts, "seed {seed}, service {index}");
    }
    now_ns
}

fn difference(after: GateCounts, before: GateCounts) -> GateCounts {
    GateCounts {
        offered: after.offered - before.offered,
        unique_offered: after.unique_offered - before.unique_offered,
        admitted: after.admitted - before.admitted,
        dropped: after.dropped - before.dropped,
        reset: after.reset - before.reset,
        answered: after.answered - before.answered,
        purged: after.purged - before.purged,
        failed_open: after.failed_open - before.failed_open,
        shadowed: after.shadowed - before.shadowed,
        preferred_offered: after.preferred_offered - before.preferred_offered,
        preferred_admitted: after.preferred_admitted - before.preferred_admitted,
        // Segments of answered connections are not the model's: the random ones hit none.
        responses: after.responses - before.responses,
        late_resets: after.late_resets - before.late_resets,
        absorbed: after.absorbed - before.absorbed,
        unsent: after.unsent - before.unsent,
        tiers: std::array::from_fn(|rank| TierCounts {
            offered: after.tiers[rank].offered - before.tiers[rank].offered,
            admitted: after.tiers[rank].admitted - before.tiers[rank].admitted,
        }),
    }
}

/// The gateway's own gate, whole: what the planner of flash crowds decides means the same in both places.
#[test]
fn the_kernel_and_the_gateway_understand_a_plan_alike() {
    let Some(mut gate) = require_closed("the gateway's gate against the kernel's", ExcessTreatment::Drop)
    else {
        return;
    };
    gate.apply(&[ServicePlan { refusal: ExcessTreatment::Drop, ..ServicePlan::default() }]).expect("a plan");
    gate.control.attempts_key = [3, 4];
    let mut rng = Rng::new(11);
    let crowded = crowded(&gate);
    let mut gateway = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let mut plan = Plan::open(1);
    let mut now_ns = SECOND_NS;
    for step in 0..20_000 {
        now_ns += step_ns(&mut rng) / 100;
        gate.tell(now_ns);
        let now = Instant::from_nanos(now_ns);
        if rng.below(50) == 0 {
            let rate = Rate::from_milli(rng.below(200_000));
            plan.epoch += 1;
            plan.limit = if rng.below(5) == 0 { Limit::Open } else { Limit::All(rate) };
            // A quarter of a second's worth, ten at the least (flash_crowd/gate.rs).
            let burst = (rate.as_milli() / 1_000 / 4).max(10) as u32;
            let tiers = (plan.limit != Limit::Open).then_some(Ceiling { rate, burst }).into();
            gateway.apply(now, &plan);
            gate.apply(&[ServicePlan { tiers, refusal: ExcessTreatment::Drop, ..ServicePlan::default() }])
                .expect("a plan");
        }
        let segment = Segment { flags: flag::SYN, ..random_segment(&mut rng, &crowded, 1) };
        let person_key = attempt_key(&gate, &segment);
        let admits = gateway.arrive(now, 1, person_key, CeilingPriority::LAST) == Verdict::Admit;
        assert_eq!(gate.verdict(&segment) == PASS, admits, "step {step}");
    }
    let (sample, counts) = (gateway.drain(Instant::from_nanos(now_ns)), gate.counts());
    assert_eq!(
        (counts.offered, counts.unique_offered, counts.admitted),
        (sample.flow.offered, sample.unique_offered, sample.flow.admitted)
    );
}

/// Goal: many processors at once never let in more than one bucket does. Method: threads run the program
/// beside one another; the time stands still, so that exactly the burst is there.
#[test]
fn processors_share_one_bucket() {
    let Some(mut gate) = require_closed("one bucket for all processors", ExcessTreatment::Drop) else {
        return;
    };
    gate.apply(&[open_to(1_000.0, 100, ExcessTreatment::Drop)]).expect("a plan");
    gate.tell(2 * SECOND_NS);
    let frame = syn().frame();
    let gate = &gate;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| gate.try_frame(&frame, 50_000).expect("a run"));
        }
    });
    assert_eq!((gate.counts().admitted, gate.counts().offered), (100, 200_000));
}
