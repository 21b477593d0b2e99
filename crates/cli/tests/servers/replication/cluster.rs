//! One origin, one redirector, four replicas: a crowd for one document.

use flashweir_testkit::{Client, eventually};

use crate::replication::scene::{Cluster, Replica, get, number, numbered, saying};

#[test]
fn a_hot_document_is_copied_once_to_each_replica_and_the_requests_are_spread() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let cluster = Cluster::start(&origin, 4);
    cluster.make_hot("/hot");
    let fetched = |cluster: &Cluster| {
        let full = "flashweir_replication_requests_total{to=\"origin_full\"}";
        origin.request_count() - cluster.redirector.metrics().value(full) as usize
    };
    // Answers that were on their way when the count was read may be of either side.
    eventually("requests at all replicas", || {
        let mut client = cluster.redirector.connect();
        (0..50).for_each(|_| drop(get(&mut client, "/hot", "")));
        cluster.replicas.iter().all(|replica| replica.answered() > 20.0).then_some(())
    });
    assert!(fetched(&cluster) <= 4, "{} fetches for four copies", fetched(&cluster));
    let metrics = cluster.redirector.metrics();
    assert!(metrics.value("flashweir_replication_copies_total{change=\"created\"}") >= 3.0);
    assert_eq!(metrics.value("flashweir_replication_documents_copied"), 1.0);
    let status = cluster.status();
    assert_eq!(status["hot_documents"][0]["document"], "shop.example/hot");
    assert_eq!(status["hot_documents"][0]["hosts"].as_array().map(Vec::len), Some(4));
    let why = status["changes"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("offered for the document"), "{why}");
    let mut client = cluster.redirector.connect();
    eventually("a report that names the document", || {
        (0..50).for_each(|_| drop(get(&mut client, "/hot", "")));
        (cluster.status()["targets"][0]["documents"][0]["name"] == "shop.example/hot").then_some(())
    });
    let text = cluster.redirector.ask_admin("/metrics").text();
    assert!(!text.contains("/hot") && !text.contains("shop.example"), "no URL in a metric");
}

#[test]
fn a_purge_at_the_redirector_reaches_every_replica() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let cluster = Cluster::start(&origin, 2);
    let mut client = cluster.redirector.connect();
    let first = number(&get(&mut client, "/page", ""));
    assert_eq!(number(&get(&mut client, "/page", "")), first);
    let request =
        "DELETE /cache?url=http://shop.example/page HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n";
    let answer = Client::connect(cluster.redirector.admin()).ask(request);
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json()["replicas_ordered"], 2, "the redirector itself has no copies");
    eventually("another answer", || (number(&get(&mut client, "/page", "")) > first).then_some(()));
}

#[test]
fn copies_that_differ_are_found_by_their_tags_and_fetched_again() {
    // As an origin behind which two servers disagree: each answer has another tag.
    let origin = numbered(|_, number| format!("Cache-Control: max-age=600\r\nETag: \"{number}\"\r\n"));
    let cluster = Cluster::start(&origin, 2);
    cluster.make_hot("/hot");
    let differed = "flashweir_replication_copies_total{change=\"differed\"}";
    let mut client = cluster.redirector.connect();
    eventually("copies that differ", || {
        (0..50).for_each(|_| drop(get(&mut client, "/hot", "")));
        (cluster.redirector.metrics().value(differed) >= 1.0).then_some(())
    });
    let before: usize = (0..20).map(|_| number(&get(&mut client, "/hot", ""))).max().expect("answers");
    assert!(before >= 1);
    eventually("a copy fetched again", || {
        let purged: f64 =
            cluster.replicas.iter().map(|it| it.metrics().value("flashweir_cache_purged_total")).sum();
        (purged >= 1.0).then_some(())
    });
}

#[test]
fn a_replica_with_a_wrong_copy_gets_the_right_one() {
    let version = |number| if number == 1 { "wrong" } else { "right" };
    let origin =
        numbered(move |_, number| format!("Cache-Control: max-age=600\r\nETag: \"{}\"\r\n", version(number)));
    let cluster = Cluster::start(&origin, 3);
    cluster.make_hot("/hot");
    // What each replica has is asked of it: so each reports the document, too.
    let versions = || -> Vec<String> {
        let ask = |it: &Replica| get(&mut Client::connect(it.address), "/hot", "");
        let versions = cluster.replicas.iter().map(|it| ask(it).field("etag").unwrap_or_default().to_owned());
        versions.collect()
    };
    assert!(versions().iter().any(|it| it == "\"right\""));
    eventually("the right copy everywhere", || {
        versions().iter().all(|version| version == "\"right\"").then_some(())
    });
    let changes = cluster.status()["changes"].to_string();
    assert!(changes.contains("differed from those of the other replicas"), "{changes}");
}

#[test]
fn what_cannot_be_cached_goes_to_the_origin() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let cluster = Cluster::start(&origin, 1);
    let mut client = cluster.redirector.connect();
    let post = "POST /page HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(client.ask(post).status(), 200);
    assert_eq!(get(&mut client, "/page", "Authorization: Basic YTph\r\n").status(), 200);
    assert_eq!(origin.request_count(), 2);
    assert_eq!(cluster.replicas[0].answered(), 0.0);
    let to_origin = "flashweir_replication_requests_total{to=\"origin_uncacheable\"}";
    assert_eq!(cluster.redirector.metrics().value(to_origin), 2.0);
}
