//! Literal counts in, a literal sample out.

use super::*;
use flashweir_core::Hasher64;
use flashweir_kernel::observe::FlowCounts;

fn numbered(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 80))
}

fn counts(offered: u64, unique_offered: u64, admitted: u64) -> GateCounts {
    let answered = offered - admitted;
    GateCounts { offered, unique_offered, admitted, answered, ..GateCounts::default() }
}

fn seen(number: u8, offered: u64, unique_offered: u64) -> DestinationCount {
    DestinationCount { destination: numbered(number), offered, unique_offered }
}

fn destinations() -> Destinations {
    Destinations::new(Hasher64::new(1, 2))
}

fn figures(number: u8, offered: u64, unique_offered: u64, admitted: u64) -> DestinationFigures {
    let counts = PlaceCounts { offered, unique_offered, admitted };
    DestinationFigures { destination: numbered(number), counts }
}

#[test]
fn only_what_was_counted_since_the_last_sample_counts_and_refused_is_offered() {
    let places = Places::new(&[numbered(1), numbered(2)]);
    let (mut sampler, mut destinations) = (Sampler::new(Instant::from_secs(1)), destinations());
    let observed = Observed { completed: 40, ..Observed::default() };
    let first = [counts(100, 90, 60), counts(7, 7, 7)];
    let sampled = sampler.sample(Instant::from_secs(2), &first, &observed, &places, &mut destinations);
    let sample = &sampled.sample;
    assert_eq!(
        (sample.flow.offered, sample.unique_offered, sample.flow.admitted, sample.completed),
        (107, 97, 67, 40)
    );
    assert_eq!((sample.from, sample.to), (Instant::from_secs(1), Instant::from_secs(2)));
    assert_eq!(sampled.destinations, [figures(1, 100, 90, 60), figures(2, 7, 7, 7)]);
    assert_eq!(sampled.destinations[0].counts.refused(), 40);

    let second = [counts(150, 120, 60), counts(7, 7, 7)];
    let nothing = Observed::default();
    let sampled = sampler.sample(Instant::from_secs(3), &second, &nothing, &places, &mut destinations);
    let sample = sampled.sample;
    assert_eq!(
        (sample.flow.offered, sample.unique_offered, sample.flow.admitted, sample.completed),
        (50, 30, 0, 0)
    );
    assert_eq!(sample.from, Instant::from_secs(2));
    assert_eq!(sampled.destinations, [figures(1, 50, 30, 0)]);
}

#[test]
fn what_a_gate_that_was_taken_over_had_counted_is_nobodys_demand() {
    let places = Places::new(&[numbered(1)]);
    let (mut sampler, mut destinations) = (Sampler::new(Instant::ZERO), destinations());
    sampler.begin_after(&[counts(1_000, 900, 300)]);
    let nothing = Observed::default();
    let counted = [counts(1_010, 908, 304)];
    let sampled = sampler.sample(Instant::from_secs(1), &counted, &nothing, &places, &mut destinations);
    let sample = sampled.sample;
    assert_eq!((sample.flow.offered, sample.unique_offered, sample.flow.admitted), (10, 8, 4));
}

#[test]
fn a_repeated_syn_of_a_connection_that_was_let_in_is_no_new_attempt() {
    let places = Places::new(&[numbered(1)]);
    let observed = Observed { offered: 60, unique_offered: 50, ..Observed::default() };
    let mut sampler = Sampler::new(Instant::ZERO);
    let sampled = sampler.sample(
        Instant::from_secs(1),
        &[counts(100, 90, 60)],
        &observed,
        &places,
        &mut destinations(),
    );
    let sample = sampled.sample;
    assert_eq!((sample.flow.offered, sample.unique_offered, sample.flow.admitted), (100, 80, 50));
}

#[test]
fn behind_an_address_for_many_what_was_refused_is_shared_out_among_those_let_in() {
    let mut places = Places::new(&["0.0.0.0:80".parse().expect("an address")]);
    places.give(&[numbered(3)]);
    let observed = Observed {
        destinations: vec![seen(1, 20, 18), seen(2, 5, 5), seen(3, 4, 4)],
        offered: 29,
        unique_offered: 29,
        ..Observed::default()
    };
    let mut destinations = destinations();
    let mut sampler = Sampler::new(Instant::ZERO);
    let counted = [counts(100, 100, 25), counts(9, 9, 4)];
    let sampled = sampler.sample(Instant::from_secs(1), &counted, &observed, &places, &mut destinations);
    assert_eq!(sampled.destinations, [figures(1, 80, 72, 20), figures(2, 20, 20, 5), figures(3, 9, 9, 4)]);
    let hosts: Vec<_> =
        sampled.sample.hosts.iter().map(|host| (destinations.of(host.key), host.hits)).collect();
    assert_eq!(hosts, [(Some(numbered(1)), 80), (Some(numbered(2)), 20), (Some(numbered(3)), 9)]);
}

#[test]
fn no_more_hosts_than_the_planner_follows_and_those_the_busiest() {
    let places = Places::new(&["0.0.0.0:80".parse().expect("an address")]);
    let destinations_seen = (0..100).map(|number| seen(number, u64::from(number), 0)).collect();
    let observed = Observed { destinations: destinations_seen, ..Observed::default() };
    let mut sampler = Sampler::new(Instant::ZERO);
    let sampled =
        sampler.sample(Instant::from_secs(1), &[counts(0, 0, 0)], &observed, &places, &mut destinations());
    assert_eq!(sampled.sample.hosts.len(), HOT_SPOT_ENTRIES);
    assert_eq!(sampled.sample.hosts[0].hits, 99);
}

#[test]
fn responses_are_dated_by_whether_they_began_under_the_plan_in_force() {
    let places = Places::new(&[numbered(1)]);
    let mut observed = Observed { flows: FlowCounts::default(), ..Observed::default() };
    observed.rates[0].record(32, 2);
    observed.rates[1].record(50, 1);
    let mut sampler = Sampler::new(Instant::ZERO);
    sampler.plan_changed(Instant::from_secs(5));
    let sampled =
        sampler.sample(Instant::from_secs(6), &[counts(0, 0, 0)], &observed, &places, &mut destinations());
    let cell = |bucket, before, since| RateCell { bucket, count: Counted { before, since } };
    assert_eq!(sampled.sample.rates, [cell(32, 2, 0), cell(50, 0, 1)]);
    assert_eq!(sampled.sample.evidence_from, Instant::from_secs(5));
    assert_eq!(sampled.sample.latencies, [], "the kernel does not know what is usual");
}

#[test]
fn the_kernel_counts_rates_by_the_buckets_of_samples() {
    use flashweir_core::measure::log_buckets::{bucket_of, middle_of};
    let mut rng = flashweir_core::Rng::new(1);
    for _ in 0..100_000 {
        let rate_bytes_per_s = rng.next_u64() >> rng.below(64);
        let mut histogram = RateHistogram::default();
        histogram.record(rate_bytes_per_s, 1);
        let bucket = bucket_of(rate_bytes_per_s);
        assert_eq!(histogram.counts()[usize::from(bucket)], 1, "{rate_bytes_per_s}");
        let middle = histogram.buckets().next().expect("one").middle();
        assert_eq!(middle, middle_of(bucket));
    }
}

#[test]
fn a_place_that_gets_another_destination_goes_on_counting() {
    let mut places = Places::new(&["0.0.0.0:80".parse().expect("an address")]);
    let (mut sampler, mut destinations) = (Sampler::new(Instant::ZERO), destinations());
    let nothing = Observed::default();
    places.give(&[numbered(1)]);
    let two = [counts(10, 10, 10), counts(30, 30, 20)];
    sampler.sample(Instant::from_secs(1), &two, &nothing, &places, &mut destinations);
    // Fewer places for a while, as after a reload.
    sampler.sample(Instant::from_secs(2), &two[..1], &nothing, &places, &mut destinations);
    let more = [counts(10, 10, 10), counts(33, 33, 20)];
    let sampled = sampler.sample(Instant::from_secs(3), &more, &nothing, &places, &mut destinations);
    assert_eq!(sampled.destinations, [figures(1, 3, 3, 0)]);
}
