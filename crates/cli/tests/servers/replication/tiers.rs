//! Two tiers: a distributor divides documents among redirectors by a hash of the URL.

use flashweir_testkit::{Gateway, GatewayBuilder, eventually, reserve_address};

use crate::replication::scene::{Replica, distributor, get, redirector, saying};

#[test]
fn each_document_has_one_redirector_and_each_redirector_its_documents() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let addresses = [reserve_address(), reserve_address()];
    // Where more is asked for than the replicas can do, the origin answers what is left: that is another
    // test's.
    let ample = |builder: GatewayBuilder| builder.set("replication.high_watermark", "100000.0");
    let redirectors = [0, 1].map(|_| ample(redirector(&origin, &addresses)).start());
    let reports = [redirectors[0].admin(), redirectors[1].admin()];
    let replicas = addresses.map(|address| Replica::start_at(address, &origin.url(), &reports, &[]));
    // The redirectors were there first, and may have left a replica out until their next check of it.
    eventually("all servers in use", || {
        let is_healthy = |server: &serde_json::Value| server["healthy"] == true;
        let in_use = |gateway: &Gateway| {
            gateway.status()["upstreams"].as_array().is_some_and(|servers| servers.iter().all(is_healthy))
        };
        redirectors.iter().all(in_use).then_some(())
    });
    let distributor = distributor(&origin, &redirectors.each_ref().map(Gateway::address)).start();
    let mut client = distributor.connect();
    for _ in 0..3 {
        for document in 0..40 {
            assert_eq!(get(&mut client, &format!("/{document}"), "").status(), 200);
        }
    }
    assert_eq!(origin.request_count(), 40, "each document is fetched once");
    let known = |index: usize| {
        let gateway: &Gateway = &redirectors[index];
        gateway.status()["replication"]["documents"].as_u64().unwrap_or(0)
    };
    eventually("all documents to be counted", || (known(0) + known(1) == 40).then_some(()));
    assert!(known(0) >= 5 && known(1) >= 5, "{} and {}", known(0), known(1));
    eventually("reports at both redirectors", || {
        let has_reports = |index: usize| {
            let gateway: &Gateway = &redirectors[index];
            gateway.metrics().value("flashweir_replication_reports_total{outcome=\"taken\"}") >= 2.0
        };
        (has_reports(0) && has_reports(1)).then_some(())
    });
    assert_eq!(replicas.iter().map(Replica::answered).sum::<f64>(), 120.0);
    assert_eq!(distributor.status()["replication"]["role"], "distributor");
}
