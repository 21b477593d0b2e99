//! One flight for each document, and nothing that was invalidated comes back.

use super::*;
use crate::{Lifetime, Parts, Received};
use bytes::Bytes;
use flashweir_core::{Duration, Hasher64};
use http::HeaderMap;
use http::{HeaderValue, Response};

const KEY: Key<'static> = Key { is_https: false, host: b"shop.example", target: b"/page" };
const HASH: u64 = 77;

fn stored(directory: &Directory<()>, fresh_s: u64, tag: &'static str) -> Arc<Stored> {
    let (mut head, ()) = Response::new(()).into_parts();
    head.headers.insert("surrogate-key", HeaderValue::from_static(tag));
    let none = HeaderMap::new();
    let parts = Parts {
        key: KEY,
        service: 1,
        host_key: 1,
        request: (&none).into(),
        head: &head,
        body: Bytes::from_static(b"body"),
        received: Received { at: Instant::ZERO, unix_s: 0 },
        lifetime: Lifetime {
            fresh: Duration::from_secs(fresh_s),
            stale_while_revalidate: Duration::from_secs(10),
            ..Lifetime::default()
        },
        is_http: true,
    };
    let reserved = directory.gauge().reserve(parts.bytes()).expect("room");
    Arc::new(Stored::new(parts, &Hasher64::new(1, 2), reserved).expect("storable"))
}

fn join(directory: &Directory<()>, second: u64, class: u8, may_lead: bool) -> Joined<()> {
    join_in(directory, second, FlightGroup { class, fields: 0 }, may_lead)
}

fn join_in(directory: &Directory<()>, second: u64, group: FlightGroup, may_lead: bool) -> Joined<()> {
    let none = HeaderMap::new();
    let asked = (HASH, &KEY, 1, (&none).into());
    directory.join(Instant::from_secs(second), asked, group, may_lead, || ())
}

fn lead(directory: &Directory<()>, second: u64) -> (Lead, Option<Arc<Stored>>) {
    match join(directory, second, 0, true) {
        Joined::Leads(lead, _, stale) => (lead, stale),
        other => panic!("expected to lead: {other:?}"),
    }
}

#[test]
fn one_fetches_and_the_others_wait() {
    let directory = Directory::new(1 << 20);
    let (first, _) = lead(&directory, 0);
    assert!(matches!(join(&directory, 0, 0, true), Joined::Waits(_)));
    assert!(matches!(join(&directory, 0, 0, false), Joined::Waits(_)));
    let Joined::Leads(other_class, ..) = join(&directory, 0, 1, true) else {
        panic!("a class waits for itself only")
    };
    let response = stored(&directory, 60, "a");
    assert!(directory.land(first, Some(&response)));
    assert!(matches!(join(&directory, 1, 0, true), Joined::Stored(_)));
    assert!(directory.land(other_class, None));
    assert_eq!((directory.flights(), directory.responses()), (0, 1));
    assert!(!directory.land(first, None), "it has landed");
}

/// RFC 9111 §7.2: a request that an origin may answer in its own way makes no other request wait.
#[test]
fn a_flight_of_unknown_fields_is_for_those_with_the_same_alone() {
    let directory = Directory::new(1 << 20);
    let group = |fields| FlightGroup { class: 0, fields };
    let Joined::Leads(first, ..) = join_in(&directory, 0, group(7), true) else { panic!("it is the first") };
    assert!(matches!(join_in(&directory, 0, group(7), true), Joined::Waits(_)));
    let Joined::Leads(other, ..) = join_in(&directory, 0, group(8), true) else { panic!("another value") };
    let (ordinary, _) = lead(&directory, 0);
    assert!(
        matches!(join_in(&directory, 0, group(9), true), Joined::Waits(_)),
        "it may be for this one, too"
    );
    assert_eq!(directory.flights(), 3);
    for lead in [first, other, ordinary] {
        assert!(directory.land(lead, None));
    }
}

#[test]
fn flights_of_unknown_fields_have_a_bound_and_leave_the_others_alone() {
    let directory = Directory::new(1 << 20);
    let group = |fields| FlightGroup { class: 0, fields };
    let flights = CACHE_FLIGHTS as u64;
    for fields in 1..=flights {
        assert!(matches!(join_in(&directory, 0, group(fields), true), Joined::Leads(..)), "{fields}");
    }
    assert!(matches!(join_in(&directory, 0, group(flights + 1), true), Joined::Full));
    assert!(matches!(join_in(&directory, 0, group(flights), true), Joined::Waits(_)));
    let _ordinary = lead(&directory, 0);
}

#[test]
fn who_may_not_fetch_gets_what_there_is() {
    let directory = Directory::new(1 << 20);
    assert!(matches!(join(&directory, 0, 0, false), Joined::Absent(None)));
    let (first, _) = lead(&directory, 0);
    let response = stored(&directory, 60, "a");
    directory.land(first, Some(&response));
    assert!(matches!(join(&directory, 65, 0, false), Joined::Stored(_)), "while it is fetched again");
    let (second, stale) = lead(&directory, 65);
    assert!(stale.is_some());
    directory.land(second, None);
    assert!(matches!(join(&directory, 75, 0, false), Joined::Absent(Some(_))));
}

#[test]
fn what_is_invalidated_while_it_is_fetched_is_for_those_who_waited_only() {
    let directory = Directory::new(1 << 20);
    let (first, _) = lead(&directory, 0);
    assert_eq!(directory.invalidate(HASH, &KEY), 0);
    let (second, _) = lead(&directory, 0);
    let response = stored(&directory, 60, "a");
    assert!(!directory.land(first, Some(&response)));
    assert!(response.is_invalid());
    let response = stored(&directory, 60, "a");
    assert!(directory.land(second, Some(&response)));
    assert_eq!(directory.invalidate(HASH, &Key { target: b"/other", ..KEY }), 0);
    assert_eq!(directory.invalidate(HASH, &KEY), 1);
    assert!(response.is_invalid());
    let mark = directory.mark(HASH);
    directory.invalidate(HASH, &KEY);
    let response = stored(&directory, 60, "a");
    assert!(!directory.publish(HASH, mark, &response) && response.is_invalid());
}

#[test]
fn a_purge_finds_what_it_names_and_every_flight() {
    let directory = Directory::new(1 << 20);
    let (first, _) = lead(&directory, 0);
    let response = stored(&directory, 60, "news");
    directory.land(first, Some(&response));
    let tag = |text: &str| crate::tag_hash(&Hasher64::new(1, 2), text.as_bytes());
    let Joined::Leads(flight, ..) = join(&directory, 200, 0, true) else { panic!("stale") };
    assert_eq!(directory.purge(|stored| stored.has_tag(tag("sport"))), 0);
    assert!(!response.is_invalid() && !directory.land(flight, None), "its flight was detached");
    assert_eq!(directory.purge(|stored| stored.has_tag(tag("NEWS"))), 1);
    assert!(response.is_invalid());
    assert_eq!(directory.responses(), 0);
}

#[test]
fn bytes_are_counted_until_the_last_has_let_go() {
    let directory = Directory::<()>::new(3_000);
    let response = stored(&directory, 60, "a");
    let mark = directory.mark(HASH);
    directory.publish(HASH, mark, &response);
    let bytes = response.bytes();
    assert_eq!(directory.gauge().bytes(), bytes);
    assert!(directory.gauge().reserve(3_000 - bytes + 1).is_none());
    drop(response);
    assert_eq!(directory.gauge().bytes(), 0);
    assert!(matches!(join(&directory, 0, 0, false), Joined::Absent(None)));
    directory.sweep();
    assert_eq!(directory.responses(), 0);
}
