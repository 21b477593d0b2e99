//! Two users on the way through a redirector and a replica: what is made for one never reaches the other.

use flashweir_testkit::Client;

use crate::scene::{Cluster, get, number, numbered};

/// Field lines of the answer, and of both users. Each answer is for one user, whatever the origin says of caching.
const PRIVATE: [(&str, &str, &str); 8] = [
    ("Cache-Control: private, max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: no-store\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, s-maxage=60\r\nSet-Cookie: id=1\r\n", "", ""),
    ("Cache-Control: max-age=60\r\nVary: *\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    (
        "Cache-Control: public, s-maxage=60\r\n",
        "Authorization: Basic YTph\r\n",
        "Authorization: Basic Yjpi\r\n",
    ),
    ("Cache-Control: max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, max-age=60\r\nVary: Cookie\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
];

fn user_of(fields: &str) -> &str {
    fields.trim().split_once(": ").map_or("-", |(_, value)| value)
}

#[test]
fn no_private_answer_reaches_another_user_through_a_replica() {
    let origin = numbered(|request, _| {
        let target = request.start.split(' ').nth(1).unwrap_or_default();
        let index: usize = target.trim_start_matches('/').parse().unwrap_or(0);
        PRIVATE[index].0.to_owned()
    });
    let cluster = Cluster::start(&origin, 2);
    let direct: Vec<_> = cluster.replicas.iter().map(|replica| replica.address).collect();
    let entries = [cluster.redirector.address(), direct[0], direct[1]];
    for entry in entries {
        for (index, (_, a, b)) in PRIVATE.iter().enumerate() {
            let (mut first, mut second) = (Client::connect(entry), Client::connect(entry));
            let mut numbers = Vec::new();
            for (is_first, fields) in [(true, a), (false, b), (true, a), (false, b)] {
                let client = if is_first { &mut first } else { &mut second };
                let answer = get(client, &format!("/{index}"), fields);
                let text = answer.text();
                let expected = match fields.starts_with("Authorization") {
                    true => format!("authorization={};", user_of(fields)),
                    false => format!("cookie={};", user_of(fields)),
                };
                assert!(text.contains(&expected), "case {index}: {fields} got {text}");
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
