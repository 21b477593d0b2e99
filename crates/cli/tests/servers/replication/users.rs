//! Two users on the way through a redirector and a replica: what is made for one never reaches the other.

use flashweir_testkit::{Client, Latch, PRIVATE, Upstream, is_made_for, private_case};

use crate::replication::scene::{Cluster, distributor, get, number, numbered};

/// Says all of them, by the number in the target.
fn scripted() -> Upstream {
    numbered(|request, _| PRIVATE[private_case(request)].0.to_owned())
}

#[test]
fn no_private_answer_reaches_another_user_through_a_replica() {
    let origin = scripted();
    let cluster = Cluster::start(&origin, 2);
    let distributor = distributor(&origin, &[cluster.redirector.address()]).start();
    let direct: Vec<_> = cluster.replicas.iter().map(|replica| replica.address).collect();
    let entries = [distributor.address(), cluster.redirector.address(), direct[0], direct[1]];
    for entry in entries {
        for (index, (_, a, b)) in PRIVATE.iter().enumerate() {
            let (mut first, mut second) = (Client::connect(entry), Client::connect(entry));
            let mut numbers = Vec::new();
            for (is_first, fields) in [(true, a), (false, b), (true, a), (false, b)] {
                let client = if is_first { &mut first } else { &mut second };
                let answer = get(client, &format!("/{index}"), fields);
                assert!(is_made_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
                numbers.push((number(&answer), is_first));
            }
            // A user may get its own answer twice, never the other's.
            for (one, is_first) in &numbers {
                let shared = numbers.iter().any(|(other, is_others)| one == other && is_first != is_others);
                assert!(!shared, "case {index}: one answer for two users: {numbers:?}");
            }
        }
    }
}

/// Through distributor, redirector and replica, while the first user's answer is being fetched.
#[test]
fn users_who_ask_at_the_same_time_get_their_own() {
    let latch = Latch::new();
    let opened = latch.clone();
    let origin = numbered(move |request, _| {
        opened.wait();
        PRIVATE[private_case(request)].0.to_owned()
    });
    // Never full: what does not fit would go to the origin around the replica.
    let cluster = Cluster::start_with(&origin, 1, |it| it.set("replication.high_watermark", "100000.0"));
    let distributor = distributor(&origin, &[cluster.redirector.address()]).start();
    let asked = |index: usize| {
        let (_, a, b) = PRIVATE[index];
        [a, b, a, b].map(|fields| (distributor.connect(), fields, index))
    };
    let mut users: Vec<(Client, &str, usize)> = (0..PRIVATE.len()).flat_map(asked).collect();
    for (client, fields, index) in &mut users {
        client.send(format!("GET /{index} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
    }
    // Those with credentials go to the origin.
    let sent = users.iter().filter(|(_, fields, _)| !fields.starts_with("Authorization")).count();
    let to_target = "flashweir_replication_requests_total{to=\"target\"}";
    distributor.wait_metric(to_target, sent as f64);
    cluster.redirector.wait_metric(to_target, sent as f64);
    latch.open();
    let mut numbers: Vec<usize> = users
        .iter_mut()
        .map(|(client, fields, index)| {
            let answer = client.response();
            assert_eq!(answer.status(), 200, "case {index}");
            assert!(is_made_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
            number(&answer)
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), users.len(), "one answer for two");
}

/// Nodes that redirect: who has something of his own to show is not sent to another host, and what a replica
/// gets for one who was is not given to the next.
#[test]
fn redirected_users_get_their_own() {
    let origin = scripted();
    let cluster = Cluster::start_with(&origin, 1, |builder| builder.text("replication.answer", "302"));
    let replica = cluster.replicas[0].address;
    for (index, (_, a, b)) in PRIVATE.iter().enumerate() {
        let mut numbers = Vec::new();
        for fields in [a, b, a, b] {
            let mut answer = get(&mut cluster.redirector.connect(), &format!("/{index}"), fields);
            if answer.status() == 302 {
                assert_eq!(*fields, "", "case {index}: a user with a cookie or credentials was sent away");
                let location = answer.field("location").expect("a location").to_owned();
                let target = location.strip_prefix(&cluster.replicas[0].url()).expect("the replica");
                let request = format!("GET {target} HTTP/1.1\r\nHost: {replica}\r\n\r\n");
                answer = Client::connect(replica).ask(&request);
            }
            assert!(is_made_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
            numbers.push(number(&answer));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 4, "case {index}: one answer for two");
    }
}
