//! The store keeps its bound and finds what was used last.

use super::*;
use crate::gauge::Gauge;
use crate::{Lifetime, Parts, Received};
use flashweir_core::{Duration, Hasher64, Instant};
use http::HeaderMap;
use http::{HeaderValue, Response};
use proptest::prelude::*;

fn key(target: &str) -> Key<'_> {
    Key { is_https: false, host: b"shop.example", target: target.as_bytes() }
}

fn stored(gauge: &Arc<Gauge>, target: &str, language: &str, size: usize, host_key: u64) -> Arc<Stored> {
    let (mut head, ()) = Response::new(()).into_parts();
    head.headers.insert("vary", HeaderValue::from_static("accept-language"));
    let request = request(language);
    let parts = Parts {
        key: key(target),
        service: 1,
        host_key,
        request: (&request).into(),
        head: &head,
        body: vec![b'x'; size].into(),
        received: Received { at: Instant::ZERO, unix_s: 0 },
        lifetime: Lifetime { fresh: Duration::from_secs(9), ..Lifetime::default() },
        is_http: true,
    };
    let reserved = gauge.reserve(parts.bytes()).expect("room");
    Arc::new(Stored::new(parts, &Hasher64::new(1, 2), reserved).expect("storable"))
}

fn request(language: &str) -> HeaderMap {
    HeaderMap::from_iter([(http::header::ACCEPT_LANGUAGE, HeaderValue::from_str(language).expect("a value"))])
}

fn gauge() -> Arc<Gauge> {
    Arc::new(Gauge::new(usize::MAX))
}

#[test]
fn variants_of_one_document_are_told_apart_and_replaced() {
    let (mut store, gauge) = (Store::new(1 << 20), gauge());
    store.insert(7, stored(&gauge, "/a", "de", 10, 1));
    store.insert(7, stored(&gauge, "/a", "en", 20, 1));
    store.insert(7, stored(&gauge, "/a", "de", 30, 1));
    let size = |store: &mut Store, language: &str| {
        store.find(7, &key("/a"), 1, &request(language)).map(|stored| stored.body().len())
    };
    assert_eq!(
        (size(&mut store, "de"), size(&mut store, "en"), size(&mut store, "fr")),
        (Some(30), Some(20), None)
    );
    assert!(store.find(7, &key("/b"), 1, &request("de")).is_none(), "a hash that collides finds nothing");
    assert!(store.find(7, &key("/a"), 2, &request("de")).is_none(), "another service's");
    assert_eq!(gauge.bytes(), store.bytes(), "what was replaced is gone");
}

#[test]
fn one_document_has_a_bound_of_variants() {
    let (mut store, gauge) = (Store::new(1 << 20), gauge());
    for language in 0..CACHE_VARIANTS + 3 {
        store.insert(7, stored(&gauge, "/a", &language.to_string(), 10, 1));
    }
    let has = |store: &mut Store, language: usize| {
        store.find(7, &key("/a"), 1, &request(&language.to_string())).is_some()
    };
    assert!(!has(&mut store, 2) && has(&mut store, 3));
}

#[test]
fn the_least_recently_used_goes_first_and_nothing_larger_than_all() {
    let gauge = gauge();
    let one = stored(&gauge, "/a", "de", 1_000, 1);
    let mut store = Store::new(3 * one.bytes());
    assert_eq!(store.insert(1, one), Inserted::Stored);
    store.insert(2, stored(&gauge, "/b", "de", 1_000, 1));
    store.insert(3, stored(&gauge, "/c", "de", 1_000, 1));
    assert!(store.find(1, &key("/a"), 1, &request("de")).is_some());
    store.insert(4, stored(&gauge, "/d", "de", 1_000, 1));
    assert!(store.find(2, &key("/b"), 1, &request("de")).is_none());
    assert!(store.find(1, &key("/a"), 1, &request("de")).is_some());
    assert_eq!(store.take_evicted(), 1);
    assert_eq!(store.insert(5, stored(&gauge, "/e", "de", 10_000, 1)), Inserted::TooLarge);
    assert_eq!(store.documents(), 3);
}

#[test]
fn what_is_invalid_or_of_a_closed_host_goes() {
    let (mut store, gauge) = (Store::new(1 << 20), gauge());
    let first = stored(&gauge, "/a", "de", 10, 1);
    store.insert(1, first.clone());
    store.insert(2, stored(&gauge, "/b", "de", 10, 2));
    first.invalidate();
    assert!(store.find(1, &key("/a"), 1, &request("de")).is_none());
    drop(first);
    assert_eq!(gauge.bytes(), store.bytes());
    store.retain_hosts(|host| host == 1);
    assert_eq!((store.documents(), store.bytes(), gauge.bytes()), (0, 0, 0));
}

proptest! {
    #[test]
    fn bytes_are_those_of_what_is_held_and_within_the_bound(
        ops in proptest::collection::vec((0u64..6, 0usize..4, 0usize..3_000, any::<bool>()), 1..80)
    ) {
        let (mut store, gauge) = (Store::new(8_000), gauge());
        for (hash, language, size, is_look) in ops {
            let (target, language) = (format!("/{hash}"), language.to_string());
            if is_look {
                let found = store.find(hash, &key(&target), 1, &request(&language));
                if let Some(found) = found.filter(|found| found.body().len() % 5 == 0) {
                    found.invalidate();
                }
            } else {
                store.insert(hash, stored(&gauge, &target, &language, size, hash));
            }
            prop_assert!(store.bytes() <= 8_000);
            prop_assert_eq!(gauge.bytes(), store.bytes());
        }
    }
}
