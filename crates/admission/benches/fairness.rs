//! Cost of fairness for a request: its evidence alone (a service that is not short), and the whole stage, for
//! persons and for clients that are judged by all seven signs. The bar: 80 ns.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_admission::fairness::{
    Acquaintance, Conduct, Evidence, Fairness, FairnessSettings, RequestSigns, SIGNS,
};
use flashweir_core::hash::mix;
use flashweir_core::{Duration, Instant};
use std::hint::black_box;

/// Addresses, each with its own session; of the other signs there are fewer.
const CLIENTS: u64 = 20_000;

fn signs(n: u64) -> RequestSigns {
    let client = mix(n) % CLIENTS;
    let values = std::array::from_fn(|sign| mix((client >> (2 * sign)) + 1) as u32 | 1);
    let conduct =
        Conduct { is_asset: !n.is_multiple_of(4), has_own_referer: !n.is_multiple_of(4), has_session: true };
    debug_assert_eq!(values.len(), SIGNS);
    RequestSigns { person_key: mix(client + 7) | 1, conduct, values }
}

fn bench(c: &mut Criterion) {
    let (evidence, mut n) = (Evidence::default(), 0_u64);
    c.bench_function("fairness: signs as the bench draws them", |b| {
        b.iter(|| {
            n += 1;
            black_box(signs(n))
        });
    });
    c.bench_function("fairness: evidence alone", |b| {
        b.iter(|| {
            n += 1;
            let signs = signs(n);
            black_box(evidence.observe(Instant::from_nanos(n * 20_000), signs.person_key, signs.conduct))
        });
    });
    for (name, is_person) in [("a person", Some(true)), ("seven signs", Some(false)), ("as found", None)] {
        let mut fairness = Fairness::new(FairnessSettings::default());
        c.bench_function(&format!("fairness: the stage, {name}"), |b| {
            b.iter(|| {
                n += 1;
                let (now, signs) = (Instant::from_nanos(n * 20_000), signs(n));
                let seen = evidence.observe(now, signs.person_key, signs.conduct);
                let known = Acquaintance { is_person: is_person.unwrap_or(seen.is_person), ..seen };
                let demoted = fairness.offer(now, &signs, known, 1_000);
                if n % 3 == 0 {
                    fairness.admit(1_000);
                }
                black_box(demoted)
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = bench
}
criterion_main!(benches);
