//! Reports that lie, copies that differ, purges, and a crowd that no report has shown yet.

use super::*;
use crate::replication::counts::DocumentCount;
use crate::replication::report::Orca;
use flashweir_config::Config;

fn station() -> Station {
    station_with("")
}

fn station_with(more: &str) -> Station {
    let toml = "upstream.urls = ['http://o']\n[replication]\nrole = 'redirector'\ninterval = '1s'\n\
                targets = ['http://r0', 'http://r1', 'http://r2', 'http://r3']\n";
    let config = Config::from_toml(&format!("{toml}{more}"), "test.toml").expect("valid");
    Station::new(&config.replication, Instant::ZERO).expect("valid")
}

fn report(server: usize, load_rps: f64, documents: &[(&str, &str)]) -> (Uri, Report) {
    let documents = documents.iter().map(|&(name, version)| ReportedDocument {
        name: name.to_owned(),
        rate_rps: 1.0,
        in_flight: 0,
        version: version.to_owned(),
    });
    let url = format!("http://r{server}:80");
    let orca = Orca { rps_fractional: load_rps, application_utilization: 0.0 };
    let report = Report { url: url.clone(), orca, in_flight: 0, documents: documents.collect() };
    (url.parse().unwrap(), report)
}

fn tell(station: &mut Station, at: u64, server: usize, load_rps: f64, documents: &[(&str, &str)]) -> Taken {
    let (url, report) = report(server, load_rps, documents);
    let taken = station.report(Instant::from_millis(at), &url, report);
    taken.unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

fn crowd(station: &mut Station, at: u64, key: u64, requests: u32) {
    let count = DocumentCount { name: Some("a/hot".into()), offered: requests, in_flight: 0, validator: 0 };
    let home = station.homes.owner(key);
    let mut sent = vec![0; 4];
    sent[home] = requests;
    station.count(Instant::from_millis(at), Sample { worker: 0, documents: vec![(key, count)], sent });
}

#[test]
fn a_crowd_is_found_within_a_second_without_a_report_and_says_why() {
    let mut station = station();
    let mut copied_at = None;
    for at in (100..=2_000).step_by(100) {
        crowd(&mut station, at, 7, 80);
        let outcome = station.tick(Instant::from_millis(at), &[true; 4]);
        if outcome.changes.contains(&(CopyChange::Created, 3)) {
            copied_at = Some(at);
            let plan = outcome.plan.expect("published");
            assert_eq!(plan.hosts(7).map(<[_]>::len), Some(4));
            break;
        }
    }
    assert!(copied_at.is_some_and(|at| at <= 1_000), "{copied_at:?}");
    let now = Instant::from_millis(copied_at.unwrap());
    let status = station.status(now);
    assert_eq!(status["hot_documents"][0]["document"], "a/hot");
    assert_eq!(status["changes"][0]["change"], "created");
    assert!(station.explain(now, 7)["changes"][0]["why"].as_str().unwrap().contains("offered"));
}

/// Goal: with the published rules nothing but a report moves anything, and the weights are those of the
/// last one.
#[test]
fn under_the_published_rules_an_overloaded_replica_asks_for_copies() {
    let mut station = station_with("rules = 'published'\n");
    let home = station.homes.owner(7);
    for at in (100..=1_000).step_by(100) {
        crowd(&mut station, at, 7, 80);
        let outcome = station.tick(Instant::from_millis(at), &[true; 4]);
        assert!(outcome.changes.iter().all(|(_, count)| *count == 0), "at {at}: {:?}", outcome.changes);
    }
    tell(&mut station, 1_050, home, 290.0, &[("a/hot", "")]);
    let outcome = station.tick(Instant::from_millis(1_100), &[true; 4]);
    assert!(!outcome.changes.contains(&(CopyChange::Created, 1)), "below the high watermark");
    tell(&mut station, 2_050, home, 400.0, &[("a/hot", "")]);
    let outcome = station.tick(Instant::from_millis(2_100), &[true; 4]);
    assert!(outcome.changes.contains(&(CopyChange::Created, 1)), "{:?}", outcome.changes);
    assert!(!outcome.is_full);
    let plan = outcome.plan.expect("published");
    let hosts = plan.hosts(7).expect("a copy").to_vec();
    assert_eq!((hosts.len(), usize::from(hosts[0])), (2, home));
    let event = station.explain(Instant::from_millis(2_100), 7)["changes"][0].clone();
    assert_eq!(event["change"], "created");
}

#[test]
fn a_lying_report_is_cut_and_moves_no_more_than_a_true_one() {
    let mut station = station();
    assert!(tell(&mut station, 100, 0, 1e300, &[]).is_bounded);
    assert_eq!(station.redirector.servers().load_rps(0), 600.0);
    // It says that nothing reaches it while this redirector sends it a crowd.
    let home = station.homes.owner(7);
    for at in (200..=1_200).step_by(100) {
        crowd(&mut station, at, 7, 50);
    }
    tell(&mut station, 1_250, home, 0.0, &[]);
    station.tick(Instant::from_millis(1_300), &[true; 4]);
    assert!(station.redirector.is_engaged());
    let (url, too_early) = report(home, 1.0, &[]);
    assert_eq!(
        station.report(Instant::from_millis(1_301), &url, too_early).err(),
        Some(ReplicaReportRefusal::TooMany)
    );
    let (_, stranger) = report(0, 1.0, &[]);
    let other: Uri = "http://elsewhere".parse().unwrap();
    assert_eq!(
        station.report(Instant::from_millis(2_000), &other, stranger).err(),
        Some(ReplicaReportRefusal::Unknown)
    );
}

#[test]
fn the_copy_that_differs_is_fetched_again_and_not_for_ever() {
    let mut station = station();
    for server in 0..3 {
        let orders = tell(&mut station, 100, server, 1.0, &[("a/b", "1f")]).orders;
        assert_eq!(orders, Orders::default());
    }
    tell(&mut station, 150, 3, 1.0, &[("a/b", "2f")]);
    let invalidate = |name: &str| Orders { invalidate: vec![name.to_owned()], ..Orders::default() };
    assert_eq!(tell(&mut station, 1_000, 0, 1.0, &[("a/b", "1f")]).orders, Orders::default());
    assert_eq!(tell(&mut station, 1_000, 3, 1.0, &[("a/b", "2f")]).orders, invalidate("a/b"));
    let mut ordered = 1;
    for at in (2_000..200_000).step_by(500) {
        (0..3).for_each(|server| drop(tell(&mut station, at, server, 1.0, &[("a/b", "1f")])));
        ordered += tell(&mut station, at, 3, 1.0, &[("a/b", "2f")]).orders.invalidate.len();
    }
    assert_eq!(ordered as u32, CHECKS_MAX, "a document that differs each time is left alone for a while");
}

#[test]
fn each_replica_gets_each_purge_once_and_too_many_become_one() {
    let mut station = station();
    assert_eq!(station.order_purge("tag=news"), 4);
    assert_eq!(tell(&mut station, 100, 1, 1.0, &[]).orders.purge, ["tag=news"]);
    assert!(tell(&mut station, 1_100, 1, 1.0, &[]).orders.purge.is_empty());
    for number in 0..=REPLICA_ORDERS {
        station.order_purge(&format!("tag={number}"));
    }
    assert_eq!(tell(&mut station, 2_100, 1, 1.0, &[]).orders.purge, ["all=true"]);
}

#[test]
fn a_replica_that_is_silent_or_cannot_be_connected_to_gets_nothing() {
    let mut station = station();
    for server in 1..4 {
        tell(&mut station, 3_900, server, 1.0, &[]);
    }
    let available = [true, true, false, true];
    let mut plan = None;
    for at in (4_000..5_100).step_by(100) {
        plan = station.tick(Instant::from_millis(at), &available).plan.or(plan);
    }
    let shares = plan.expect("published").shares().to_vec();
    assert_eq!(shares.iter().map(|share| *share > 0).collect::<Vec<_>>(), [false, true, false, true]);
}
