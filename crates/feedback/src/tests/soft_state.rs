//! Goal: what crosses the wire is read back, all else is refused, and lost, late, repeated and forged
//! messages do no harm. Method: properties over messages, bytes and orders of arrival, with a real HMAC.

use crate::{
    Advertisement, Advertiser, Feedback, Field, FieldError, Intake, KeyRing, Limit, News, SEVERITY_MAX,
    Senders, Taken, UpstreamLimit,
};
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant, Rate, Rng};
use proptest::prelude::*;
use ring::hmac;

fn hmac_of(secret: &[u8]) -> impl Fn(&[&[u8]]) -> [u8; 32] + use<> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |parts| {
        let mut context = hmac::Context::with_key(&key);
        parts.iter().for_each(|part| context.update(part));
        context.sign().as_ref().try_into().expect("32 bytes")
    }
}

type Key = Box<dyn Fn(&[&[u8]]) -> [u8; 32]>;

fn ring(keys: &[(u8, &[u8])]) -> KeyRing<Key> {
    KeyRing::new(keys.iter().map(|&(id, secret)| (id, Box::new(hmac_of(secret)) as Key)).collect())
        .expect("a ring")
}

fn no_keys() -> KeyRing<Key> {
    KeyRing::empty()
}

fn message() -> impl Strategy<Value = Feedback> {
    let rate = proptest::option::of(0u64..u64::from(u32::MAX));
    let ranks = (0..CLASSES as u8, 0..=SEVERITY_MAX);
    (any::<u32>(), any::<u32>(), ranks, rate, 100u64..=10_000).prop_map(
        |(epoch, sequence, (from_rank, severity), rate, ttl_ms)| Feedback {
            epoch,
            sequence,
            from_rank,
            severity,
            rate: rate.map(Rate::from_milli),
            ttl: Duration::from_millis(ttl_ms),
        },
    )
}

proptest! {
    #[test]
    fn a_message_is_read_back(feedback in message(), is_signed in any::<bool>(), context in proptest::collection::vec(any::<u8>(), 0..40)) {
        let keys = if is_signed { ring(&[(3, b"secret")]) } else { no_keys() };
        let field = Field::new(&feedback, &keys, &context).expect("a sane message");
        let text = field.as_bytes();
        prop_assert_eq!(text.len(), if is_signed { 46 } else { 26 });
        // A Byte Sequence of RFC 9651: base64 between colons.
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        prop_assert!(text.starts_with(b":") && text.ends_with(b":") && text[1..text.len() - 1].iter().all(is_base64));
        prop_assert_eq!(Field::parse(text, &keys, &context), Ok(feedback));
        if is_signed {
            let other_context = [&context[..], b"x"].concat();
            prop_assert_eq!(Field::parse(text, &keys, &other_context), Err(FieldError::Forged));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_a_sane_message(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Field::parse(&bytes, &no_keys(), b"");
        prop_assert!(Field::parse(&bytes, &ring(&[(1, b"secret")]), b"").is_err());
    }

    /// The same for what nearly is a field: the right length and alphabet, so that the numbers are reached.
    #[test]
    fn any_message_bytes_are_refused_or_a_sane_message(bytes in proptest::array::uniform17(any::<u8>())) {
        use base64::Engine;
        let text = format!(":{}:", base64::engine::general_purpose::STANDARD.encode(bytes));
        if let Ok(feedback) = Field::parse(text.as_bytes(), &no_keys(), b"") {
            prop_assert!(usize::from(feedback.from_rank) < CLASSES && feedback.severity <= SEVERITY_MAX);
            prop_assert_eq!(bytes[0], 0x10);
            let again = Field::new(&feedback, &no_keys(), b"").expect("sane");
            prop_assert_eq!(again.as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn one_changed_byte_is_noticed(feedback in message(), at in 0usize..46, byte in any::<u8>()) {
        let keys = ring(&[(1, b"secret")]);
        let field = Field::new(&feedback, &keys, b"a").expect("sane");
        let mut bytes = field.as_bytes().to_vec();
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        prop_assert!(Field::parse(&bytes, &keys, b"a").is_err());
        prop_assert!(Field::parse(&bytes[..at], &keys, b"a").is_err());
    }

    /// Messages that an observer recorded and sends again, in any order and at any time, change no limit, so
    /// they raise none.
    #[test]
    fn a_replay_never_changes_the_limit(
        messages in proptest::collection::vec((message(), 0u64..3_000), 1..20), replays in proptest::collection::vec((0usize..20, 0u64..3_000), 1..20),
    ) {
        let mut limit = UpstreamLimit::default();
        let mut now_ms = 0;
        let offered = Rate::from_per_second(50.0);
        // One run of the node: what it says is numbered in order.
        let messages: Vec<_> = (1..).zip(messages).map(|(sequence, (it, gap))| (Feedback { epoch: 7, sequence, ..it }, gap)).collect();
        for (feedback, gap_ms) in &messages {
            now_ms += gap_ms;
            prop_assert_eq!(limit.hear(Instant::from_millis(now_ms), feedback, offered), News::Newer);
        }
        for (at, gap_ms) in replays {
            now_ms += gap_ms;
            let now = Instant::from_millis(now_ms);
            let before = limit.limit(now);
            let replayed = &messages[at % messages.len()].0;
            prop_assert_eq!(limit.hear(now, replayed, offered), News::Stale);
            prop_assert_eq!(limit.limit(now), before);
        }
    }

    /// The newest message decides, in every order of arrival.
    #[test]
    fn reordered_messages_end_with_the_newest(order in Just((1u32..=12).collect::<Vec<_>>()).prop_shuffle()) {
        let mut limit = UpstreamLimit::default();
        let ttl = Duration::from_secs(2);
        for sequence in order {
            let rate = Some(Rate::from_per_second(f64::from(sequence) * 10.0));
            let feedback = Feedback { epoch: 1, sequence, from_rank: 0, severity: 1, rate, ttl };
            limit.hear(Instant::ZERO, &feedback, Rate::from_per_second(300.0));
        }
        prop_assert_eq!(limit.limit(Instant::ZERO).map(|limit| limit.rate), Some(Rate::from_per_second(120.0)));
    }

    /// Goal: messages lost and late leave the newest one that came in force for as long as it is valid.
    /// Method: one refresh each 100 ms for 20 s, 40 % lost, 20 % late by up to 500 ms, as if the responses
    /// carried no copies.
    #[test]
    fn loss_and_reordering_leave_the_newest_in_force(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let mut arrivals: Vec<(u64, Feedback)> = Vec::new();
        let ttl = Duration::from_secs(2);
        for sequence in 1..=200u32 {
            if rng.unit_f64() < 0.4 {
                continue;
            }
            let late_ms = if rng.unit_f64() < 0.2 { rng.below(500) } else { 0 };
            let rate = Some(Rate::from_per_second(if sequence < 100 { 40.0 } else { 20.0 }));
            let feedback = Feedback { epoch: 1, sequence, from_rank: 0, severity: 1, rate, ttl };
            arrivals.push((u64::from(sequence) * 100 + late_ms, feedback));
        }
        arrivals.sort_by_key(|(at_ms, _)| *at_ms);
        let mut limit = UpstreamLimit::default();
        let (mut newest, mut next) = (None::<(Instant, Feedback)>, 0);
        for now in (0..20_000u64).step_by(10).map(Instant::from_millis) {
            while let Some((_, feedback)) = arrivals.get(next).filter(|(at_ms, _)| Instant::from_millis(*at_ms) <= now) {
                limit.hear(now, feedback, Rate::from_per_second(100.0));
                if newest.is_none_or(|(_, newest)| newest.sequence < feedback.sequence) {
                    newest = Some((now, *feedback));
                }
                next += 1;
            }
            // An expired limit is given up by steps: another property's subject.
            if newest.is_none_or(|(heard, _)| now < heard + ttl) {
                let expected = newest.and_then(|(_, feedback)| feedback.rate);
                prop_assert_eq!(limit.limit(now).map(|limit| limit.rate), expected, "at {:?}", now);
            }
        }
    }
}

#[test]
fn each_wrong_field_is_named() {
    let keys = ring(&[(2, b"new"), (1, b"old")]);
    let ttl = Duration::from_secs(2);
    let feedback = Feedback { epoch: 1, sequence: 2, from_rank: 3, severity: 1, rate: None, ttl };
    let parse = |bytes: &[u8], keys: &KeyRing<Key>| Field::parse(bytes, keys, b"a").unwrap_err().to_string();
    assert_eq!(parse(b"", &keys), "a field of 0 bytes: expected 26, or 46 with a tag");
    assert_eq!(parse(&[b':'; 26], &keys), "not a Byte Sequence of RFC 9651");
    let plain = Field::new(&feedback, &no_keys(), b"a").unwrap();
    assert_eq!(parse(plain.as_bytes(), &keys), "the message has no tag, and there are keys");
    let signed = Field::new(&feedback, &keys, b"a").unwrap();
    assert_eq!(
        parse(signed.as_bytes(), &no_keys()),
        "the message is signed with key 2, which is not among the keys"
    );
    assert_eq!(parse(signed.as_bytes(), &ring(&[(2, b"other")])), "the tag is wrong");
    let old = Field::new(&feedback, &ring(&[(1, b"old")]), b"a").unwrap();
    assert_eq!(Field::parse(old.as_bytes(), &keys, b"a"), Ok(feedback), "keys are replaced without a gap");
    let absurd = Feedback { from_rank: 16, ..feedback };
    assert_eq!(Field::new(&absurd, &keys, b"").unwrap_err().to_string(), "rank 16: expected at most 15");
    let longest = Feedback { ttl: Duration::from_secs(11), ..feedback };
    assert_eq!(
        Field::new(&longest, &keys, b"").unwrap_err().to_string(),
        "time to live, ms, 11000: expected at most 10000"
    );
    assert_eq!(parse(b":IAAAAAEAAAACAwH/////B9A=:", &no_keys()), "version 2: expected 1");
}

/// The example of docs/feedback.md, so that other implementations can compare.
#[test]
fn the_documented_example_is_what_is_sent() {
    let rate = Some(Rate::from_per_second(12.5));
    let ttl = Duration::from_secs(2);
    let feedback = Feedback { epoch: 1_700_000_000, sequence: 42, from_rank: 1, severity: 2, rate, ttl };
    let plain = Field::new(&feedback, &no_keys(), b"").unwrap();
    let signed = Field::new(&feedback, &ring(&[(1, b"correct horse battery staple")]), b"shop>api").unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/feedback.md"))
        .expect("the page");
    for field in [plain, signed] {
        let text = std::str::from_utf8(field.as_bytes()).expect("ASCII");
        assert!(page.contains(text), "docs/feedback.md has no {text}");
    }
}

/// Goal: both ends together. Method: four senders, of which one is idle, hear of their shares with each
/// response.
#[test]
fn an_advertised_rate_arrives_as_shares_and_its_end_as_a_release() {
    let keys = || ring(&[(1, b"secret")]);
    let mut node = Advertiser::new(9, Duration::from_secs(2), keys(), Senders::new()).unwrap();
    let mut senders: Vec<_> = (0..4u8).map(|name| Intake::new(keys(), &[name])).collect();
    let asks = Advertisement { from_rank: 1, severity: 1, rate: Rate::from_per_second(90.0) };
    let mut heard: [Option<Limit>; 4] = [None; 4];
    for tick in 0..60u64 {
        let now = Instant::from_millis(100 * tick);
        node.refresh(now, (20..50).contains(&tick).then_some(asks));
        for (name, intake) in (0u8..).zip(&mut senders) {
            // The last sends one request a second, the others ten each 100 ms.
            for _ in 0..if name < 3 { 10 } else { u32::from(tick % 10 == 0) } {
                let judged = node.hear(now, u64::from(name), 1, 1);
                if let Some(field) = node.field(now, judged.slot, &[name]) {
                    let taken = intake.take(now, field.as_bytes(), || Rate::from_per_second(100.0)).unwrap();
                    assert_ne!(taken, Taken::Stale);
                }
            }
            heard[usize::from(name)] = intake.limit().limit(now);
        }
        match tick {
            19 => assert_eq!(heard, [None; 4], "no limit, no field"),
            45 => {
                let rates = heard.map(|limit| limit.expect("a limit").rate.per_second());
                let (idle, busy) = (rates[3], &rates[..3]);
                assert!(busy.iter().all(|&rate| (28.0..30.0).contains(&rate)), "{rates:?}");
                assert!((1.0..4.0).contains(&idle), "{rates:?}");
                assert_eq!(heard[0].map(|limit| (limit.from_rank, limit.severity)), Some((1, 1)));
            }
            52 => assert_eq!(heard[..3], [None; 3], "released"),
            _ => {}
        }
    }
    let late = Instant::from_secs(60);
    let judged = node.hear(late, 0, 1, 1);
    assert_eq!(node.field(late, judged.slot, &[0]), None, "invisible again");
}

/// A sender that ignores its share has what is beyond it marked, and a sender within its share has nothing
/// marked.
#[test]
fn what_is_beyond_a_share_is_marked() {
    let mut node = Advertiser::new(1, Duration::from_secs(2), no_keys(), Senders::new()).unwrap();
    let asks = Advertisement { from_rank: 0, severity: 1, rate: Rate::from_per_second(100.0) };
    let mut marked = [0u32; 2];
    for millis in 0..20_000u64 {
        let now = Instant::from_millis(millis);
        if millis % 100 == 0 {
            node.refresh(now, Some(asks));
        }
        // Shares of 50 a second: one sends 50, the other 250.
        for (name, every_ms) in [(0u64, 20), (1, 4)] {
            if millis % every_ms == 0 {
                let judged = node.hear(now, name, 1, 0);
                marked[name as usize] += u32::from(judged.is_over_share && millis >= 5_000);
            }
        }
    }
    // 200 of 250 a second are too many, and a twentieth of the share is tolerated.
    assert_eq!(marked[0], 0);
    assert!((2_900..3_050).contains(&marked[1]), "{marked:?}");
}

#[test]
fn more_senders_than_the_table_holds_share_its_last_entry() {
    let mut senders = Senders::with_bound(2);
    let slots = [1u64, 2, 3, 4, 1].map(|key| senders.hear(Instant::ZERO, key, 1, true).slot);
    assert_eq!((slots[0], slots[2], slots[3]), (slots[4], slots[1], slots[1]));
    senders.divide(Instant::from_secs(1), Some(Rate::from_per_second(10.0)));
    assert_eq!(senders.share(slots[0]), Some(Rate::from_per_second(5.0)));
    // After a silence all are forgotten, and the table has room again.
    senders.divide(Instant::from_secs(10), Some(Rate::from_per_second(10.0)));
    assert!(senders.is_empty());
    assert_ne!(
        senders.hear(Instant::from_secs(10), 3, 1, true).slot,
        senders.hear(Instant::from_secs(10), 4, 1, true).slot
    );
}

/// Goal: a slot that is kept names its own sender or none, though others are forgotten and come again.
#[test]
fn a_slot_never_names_another_sender() {
    let mut senders = Senders::new();
    let hear = |senders: &mut Senders, at_s, key, weight| {
        senders.hear(Instant::from_secs(at_s), key, weight, true).slot
    };
    let (first, second) = (hear(&mut senders, 0, 1, 1), hear(&mut senders, 2, 2, 3));
    let third = hear(&mut senders, 2, 3, 1);
    senders.divide(Instant::from_secs(4), Some(Rate::from_per_second(40.0)));
    // The first is forgotten, and the second has three parts of four.
    assert_eq!(senders.share(first), None);
    assert_eq!(senders.share(second), Some(Rate::from_per_second(30.0)));
    assert_eq!(senders.share(third), Some(Rate::from_per_second(10.0)));
    assert_eq!((senders.find(2).is_some(), senders.find(1)), (true, None));
    senders.divide(Instant::from_secs(9), Some(Rate::from_per_second(40.0)));
    hear(&mut senders, 9, 4, 1);
    assert_eq!((senders.share(second), senders.len()), (None, 1));
}

/// Goal: a node that restarts in the middle of a crowd is believed at once, and what it said before is not
/// any more. Method: the second run has a later epoch and begins its sequence again.
#[test]
fn a_restart_is_a_later_epoch() {
    let keys = || ring(&[(1, b"secret")]);
    let node = |epoch| {
        Advertiser::new(epoch, Duration::from_secs(2), keys(), Senders::new()).expect("a time to live")
    };
    let mut sender = Intake::new(keys(), b"a");
    let say = |node: &mut Advertiser<Key>, at_ms, rate| {
        let now = Instant::from_millis(at_ms);
        let asks = Advertisement { from_rank: 0, severity: 1, rate: Rate::from_per_second(rate) };
        let slot = node.hear(now, 1, 1, 0).slot;
        node.refresh(now, Some(asks));
        node.field(now, slot, b"a").expect("a field")
    };
    let (mut first, mut second) = (node(100), node(200));
    let old = say(&mut first, 1_000, 50.0);
    let older: Vec<_> = (0..5).map(|tick| say(&mut first, 1_100 + 100 * tick, 50.0)).collect();
    let new = say(&mut second, 1_700, 20.0);
    let mut take = |at_ms, field: &Field| {
        let now = Instant::from_millis(at_ms);
        let taken = sender.take(now, field.as_bytes(), || Rate::from_per_second(100.0)).expect("in order");
        (taken, sender.limit().limit(now).map(|limit| limit.rate.per_second()))
    };
    assert_eq!(take(1_000, &old), (Taken::New, Some(50.0)));
    assert_eq!(take(1_600, &older[4]), (Taken::New, Some(50.0)));
    assert_eq!(take(1_700, &new), (Taken::New, Some(20.0)));
    assert_eq!(take(1_800, &older[4]), (Taken::Stale, Some(20.0)));
    assert_eq!(take(1_900, &new), (Taken::Repeated, Some(20.0)));
}
