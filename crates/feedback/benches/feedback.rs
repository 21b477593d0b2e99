//! Cost of feedback: a field on a response, the same field taken in again, news with its HMAC, and the
//! division over 1,000 senders with all their fields signed, as ten times a second at a busy node.
//!
//! Bars: 60 ns for emitting and for taking in a repetition; 1 ms (1 % of a core at 10 Hz) for the division.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_core::{Duration, Instant, Rate};
use flashweir_feedback::{Advertisement, Advertiser, Feedback, Field, Intake, KeyRing, SenderSlot, Senders};
use ring::hmac;
use std::hint::black_box;

const SENDERS: u64 = 1_000;

struct Hmac(hmac::Key);

impl flashweir_feedback::Mac for Hmac {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        context.sign().as_ref().try_into().expect("32 bytes")
    }
}

fn keys() -> KeyRing<Hmac> {
    KeyRing::new(vec![(1, Hmac(hmac::Key::new(hmac::HMAC_SHA256, b"a key of thirty-two bytes or so.")))])
        .expect("a ring")
}

fn node(keys: KeyRing<Hmac>) -> (Advertiser<Hmac>, Vec<SenderSlot>) {
    let mut node = Advertiser::new(1, Duration::from_secs(2), keys, Senders::new()).expect("a time to live");
    let slots = (0..SENDERS).map(|key| node.hear(Instant::ZERO, key, 1, 1).slot).collect();
    (node, slots)
}

fn asks() -> Option<Advertisement> {
    Some(Advertisement { from_rank: 1, severity: 1, rate: Rate::from_per_second(5_000.0) })
}

fn per_response(c: &mut Criterion) {
    let (mut node, slots) = node(keys());
    node.refresh(Instant::from_millis(100), asks());
    let now = Instant::from_millis(150);
    let mut at = 0;
    c.bench_function("hear a sender, emit its field", |b| {
        b.iter(|| {
            at = (at + 7) % slots.len();
            let judged = node.hear(now, at as u64, 1, 1);
            black_box(node.field(now, judged.slot, b"shop>api"))
        });
    });
    let field = node.field(now, slots[0], b"shop>api").expect("a field");
    let mut intake = Intake::new(keys(), b"shop>api");
    c.bench_function("take in a repeated field", |b| {
        b.iter(|| black_box(intake.take(now, black_box(field.as_bytes()), || Rate::ZERO)));
    });
    let mut sequence = 0;
    c.bench_function("sign a message and take it in", |b| {
        let (keys, ttl) = (keys(), Duration::from_secs(2));
        b.iter(|| {
            sequence += 1;
            let feedback =
                Feedback { epoch: 2, sequence, from_rank: 1, severity: 1, rate: Some(Rate::ZERO), ttl };
            let field = Field::new(&feedback, &keys, b"shop>api").expect("sane");
            black_box(intake.take(now, field.as_bytes(), || Rate::ZERO))
        });
    });
}

fn division(c: &mut Criterion) {
    for (name, is_signed) in
        [("divide over 1,000 senders", false), ("divide over 1,000 senders, sign all fields", true)]
    {
        let (mut node, slots) = node(keys());
        let mut now = Instant::ZERO;
        c.bench_function(name, |b| {
            b.iter(|| {
                // Time hardly advances, so that no sender is forgotten.
                now += Duration::from_nanos(100);
                node.refresh(now, asks());
                if is_signed {
                    for &slot in &slots {
                        black_box(node.field(now, slot, b"shop>api"));
                    }
                }
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
    targets = per_response, division
}
criterion_main!(benches);
