//! Goal: gateways that are the pods of a Service share its limit by a Lease and streams of gRPC, and go on
//! without a leader or an API server. Method: the released control plane, gateways as pods with the rights of
//! `deploy/kubernetes/gateway.yaml` and no others, which are killed, stopped, stood still and added.
//!
//! Twin in virtual time of the tests under load: `provisioning`, `many_gateways_admit_what_one_does`.

use crate::cluster::shared_limit::{CAPACITY_RPS, WAIT_MS, WORKERS};
use crate::kubernetes::gateways_false_leader::FalseLeader;
use crate::kubernetes::workload::{Cluster, Workload, create_origin, grant, ready};
use crate::kubernetes::{BINARY, PEOPLE};
use flashweir_testkit::{
    Client, ControlPlane, Flashweir, KubernetesApi, Load, Metrics, Process, ProcessKubelet, Signal, until,
};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ten times what a busy machine takes.
const WITHIN: Duration = Duration::from_secs(120);
pub(crate) const SERVICE: &str = "flashweir-gateways";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/flashweir-gateways";
pub(crate) const KEY: &str = "correct-horse-battery-staple";
/// The holder writes four times in two seconds; the API server has its own Lease.
const WRITES_PER_S: f64 = 2.0;

#[test]
#[ignore = "real load: make test-load"]
fn gateways_of_a_service_share_its_limit_in_a_real_cluster_under_load() {
    let cluster = Cluster {
        test: "gateways_of_a_service_share_its_limit_in_a_real_cluster_under_load",
        namespace: "gateways",
        users: &["gateway"],
        ..Cluster::default()
    };
    cluster.play(|plane| {
        let began = Instant::now();
        let mut scene = Scene::begin(plane, 3);
        let said = |what: &str| println!("{:5.1} s {what}", began.elapsed().as_secs_f64());
        scene.share();
        said("the limit is shared");
        scene.write_nothing_for_reports();
        said("reports are no writes");
        scene.refuse_strangers();
        said("strangers are refused");
        scene.drop_what_an_older_leader_says();
        said("older leaders are not heard");
        scene.kill_the_leader();
        said("a killed leader has a successor");
        scene.let_one_join();
        said("a gateway has joined");
        scene.stop_the_leader();
        said("a stopped leader has given the Lease up");
        scene.let_a_former_leader_wake_up();
        said("a former leader says nothing");
        scene.lose_the_api_server();
        said("the API server was gone and is back");
    });
}

/// Status of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) ip: IpAddr,
    cluster: Value,
}

impl Gateway {
    /// None where it does not answer.
    pub(crate) fn ask(ip: IpAddr) -> Option<Self> {
        let status: Value = serde_json::from_str(&get(ip, "/status")?).ok()?;
        Some(Self { ip, cluster: status["cluster"].clone() })
    }

    fn number(&self, key: &str) -> f64 {
        self.cluster["services"][0][key].as_f64().unwrap_or(0.0)
    }

    fn standing(&self) -> &str {
        self.cluster["services"][0]["standing"].as_str().unwrap_or_default()
    }

    fn is_leader(&self) -> bool {
        self.cluster["is_leader"] == true
    }

    fn term(&self) -> u64 {
        self.cluster["services"][0]["term"].as_u64().unwrap_or(0)
    }
}

/// One that stands still does not answer: the wait is bounded.
fn get(ip: IpAddr, path: &str) -> Option<String> {
    let mut client = Client::try_connect(SocketAddr::new(ip, 9900)).ok()?;
    let accept = "application/openmetrics-text,text/plain;q=0.5";
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: admin\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    client.try_send(request).ok()?;
    Some(client.try_response().ok()?.text())
}

fn metric(ip: IpAddr, series: &str) -> f64 {
    let text = get(ip, "/metrics").expect("metrics");
    Metrics::parse(&text).expect("OpenMetrics").value(series)
}

/// A share is had, of a leader's term after `term`, with this many gateways.
fn all_share(gateways: &[Gateway], count: usize, term: u64) -> bool {
    let shares = |it: &Gateway| {
        it.standing() == "sharing" && it.number("gateways") == count as f64 && it.term() > term
    };
    gateways.len() == count && gateways.iter().all(shares)
}

pub(crate) struct Scene {
    // Dropped in this order: crowds, pods, their node, then the API server that the node asks.
    crowds: Vec<Load>,
    kubelet: ProcessKubelet,
    pub(crate) api: KubernetesApi,
    plane: ControlPlane,
    directory: TempDir,
}

impl Scene {
    pub(crate) fn begin(plane: ControlPlane, gateways: u32) -> Self {
        let api = plane.administrator();
        grant(&api, "gateway.yaml", "gateway");
        let kubelet = ProcessKubelet::start(api.clone(), "node");
        let directory = TempDir::new().expect("a directory");
        let scene = Self { crowds: Vec::new(), kubelet, api, plane, directory };
        let write =
            |name: &str, text: &str| std::fs::write(scene.file(name), text).expect("a writable directory");
        write("cluster.keys", &format!("1 {KEY}\n"));
        write("gateway.toml", "gateway.name = \"shop\"\ngateway.workers = 1\nflash_crowd.mode = \"off\"\n");
        let (workers, wait_ms) = (WORKERS.to_string(), WAIT_MS.to_string());
        create_origin(&scene.api, 8080, &["--workers", &workers, "--wait-ms", &wait_ms]);
        let command = scene.command("gateway", "$(POD_IP)", SERVICE, "cluster.keys");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let ports = [("http", 8081), ("admin", 9900), ("reports", 9920)];
        Workload { replicas: gateways, ..Workload::one_pod("flashweir", SERVICE, &ports, &command) }
            .create(&scene.api);
        scene
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// A gateway of `user` at an address.
    pub(crate) fn command(&self, user: &str, ip: &str, service: &str, keys: &str) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        vec![
            BINARY.to_owned(),
            "run".to_owned(),
            format!("--config={}", path(&self.file("gateway.toml"))),
            "--upstream-service=default/web:http".to_owned(),
            format!("--kubeconfig={}", path(&self.plane.kubeconfig(user))),
            format!("--listen={ip}:8081"),
            format!("--admin={ip}:9900"),
            format!("--state-file={ip}.json"),
            format!("--cluster-service={service}:reports"),
            format!("--cluster-listen={ip}:9920"),
            format!("--cluster-keys={}", path(&self.file(keys))),
        ]
    }

    /// Gateways that the Service has and that answer.
    fn gateways(&self) -> Vec<Gateway> {
        ready(&self.api, SERVICE).into_iter().filter_map(Gateway::ask).collect()
    }

    pub(crate) fn wait_shared(&self, what: &str, count: usize, term: u64) -> Vec<Gateway> {
        until(what, WITHIN, || {
            let gateways = self.gateways();
            all_share(&gateways, count, term).then_some(gateways)
        })
    }

    fn leader(&self) -> Gateway {
        until("a leader", WITHIN, || self.gateways().into_iter().find(Gateway::is_leader))
    }

    fn holder(&self) -> String {
        let lease = self.api.get(LEASE).body;
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// A crowd at two of the gateways, unlike: the shares follow it and their sum is the limit.
    fn share(&mut self) {
        let gateways = self.wait_shared("three gateways share", 3, 0);
        let leaders: Vec<&Gateway> = gateways.iter().filter(|it| it.is_leader()).collect();
        assert_eq!(leaders.len(), 1, "{gateways:#?}");
        let holder = self.holder();
        assert!(holder.starts_with(&format!("{}:9920_", leaders[0].ip)), "{holder} for {}", leaders[0].ip);
        let transitions = self.api.get(LEASE).body["spec"]["leaseTransitions"].as_u64();
        assert_eq!(transitions, Some(leaders[0].term()), "the term is the Lease's");
        let crowd = |(gateway, part): (&Gateway, f64)| {
            let url = format!("http://{}:8081/", gateway.ip);
            let rate = format!("{:.0}", part * CAPACITY_RPS);
            let options =
                ["--rate", &rate, "--duration", "25s", "--sources", "400", "--source-network", PEOPLE];
            Load::start(&Flashweir::new(BINARY), &url, &options)
        };
        self.crowds = gateways.iter().zip([1.5, 0.5, 0.0]).take(2).map(crowd).collect();
        until("shares by demand", WITHIN, || {
            let shares: Vec<Gateway> = gateways.iter().filter_map(|it| Gateway::ask(it.ip)).collect();
            let share = |place: usize| shares[place].number("share");
            let is_by_demand = share(0) > 1.7 * share(1) && share(1) > share(2);
            let sum = share(0) + share(1) + share(2);
            (is_by_demand && sum <= 1.1 * shares[0].number("limit")).then_some(())
        });
    }

    /// The API server is written to for the Lease, some two times a second, however many reports there are;
    /// anything else it would refuse to the gateways' account.
    fn write_nothing_for_reports(&self) {
        let leader = self.leader();
        let look = || {
            let reports = metric(leader.ip, "flashweir_cluster_reports_total{outcome=\"counted\"}");
            (reports, metric(leader.ip, "flashweir_cluster_lease_writes_total"), self.api_calls())
        };
        let since = Instant::now();
        let (reports, own, (writes, refused)) = look();
        until("further reports", WITHIN, || (look().0 >= reports + 90.0).then_some(()));
        let after = look();
        let most = WRITES_PER_S * since.elapsed().as_secs_f64();
        let (own, writes, refused) = (after.1 - own, after.2.0 - writes, after.2.1 - refused);
        println!(
            "{} reports, {own} writes of the Lease by the holder, {writes} of all Leases",
            after.0 - reports
        );
        assert!(own >= 1.0 && own <= most + 2.0, "{own} in {:?}", since.elapsed());
        assert!(writes <= most + 3.0, "{writes} in {:?}", since.elapsed());
        assert_eq!(refused, 0.0, "the gateways asked for what is not theirs");
    }

    /// Writes of Leases, and calls that were forbidden, by the API server's own books.
    fn api_calls(&self) -> (f64, f64) {
        let text = self.api.get("/metrics").text;
        let calls = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        let (mut writes, mut refused) = (0.0, 0.0);
        for line in calls {
            let count: f64 = line.rsplit(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
            let is_write = ["POST", "PUT", "PATCH", "DELETE", "APPLY"]
                .iter()
                .any(|verb| line.contains(&format!("verb=\"{verb}\"")));
            if is_write && line.contains("resource=\"leases\"") {
                writes += count;
            }
            if line.contains("code=\"403\"") {
                refused += count;
            }
        }
        (writes, refused)
    }

    /// A gateway of the same rights and another key reports, and no endpoint says that it is one of the
    /// Service's.
    fn refuse_strangers(&self) {
        std::fs::write(self.file("other.keys"), "1 another-horse-battery-staple\n")
            .expect("a writable directory");
        let leader = self.leader();
        let stranger = self.start("10.244.200.1", SERVICE, "other.keys", "gateway");
        until("forged reports are counted", WITHIN, || {
            (metric(leader.ip, "flashweir_cluster_reports_total{outcome=\"forged\"}") > 3.0).then_some(())
        });
        until("the stranger is logged", WITHIN, || {
            stranger.stderr().contains("PermissionDenied: the tag is wrong").then_some(())
        });
        let stranger_says = Gateway::ask("10.244.200.1".parse().expect("an address")).expect("an answer");
        assert!(!stranger_says.is_leader() && stranger_says.standing() != "sharing", "{stranger_says:?}");
        assert_eq!(self.leader().number("gateways"), 3.0);
    }

    pub(crate) fn start(&self, ip: &str, service: &str, keys: &str, user: &str) -> Process {
        let command = self.command(user, ip, service, keys);
        Flashweir::new(BINARY).start(self.directory.path(), &command[1..])
    }

    /// A gateway that shares nothing.
    pub(crate) fn start_alone(&self, ip: &str) -> Process {
        let command = self.command("gateway", ip, SERVICE, "cluster.keys");
        let own = command[1..].iter().filter(|word| !word.starts_with("--cluster-"));
        Flashweir::new(BINARY).start(self.directory.path(), own)
    }

    /// A leader with the right key, by the Lease of another Service, that goes back to an older term.
    fn drop_what_an_older_leader_says(&self) {
        const OTHER: &str = "others";
        let (leader, own) = ("10.244.200.2", "10.244.200.3");
        FalseLeader::announce(&self.api, OTHER, leader, own);
        let leader = FalseLeader::start(SocketAddr::new(leader.parse().expect("an address"), 9920));
        let gateway = self.start(own, OTHER, "cluster.keys", "administrator");
        let own: IpAddr = own.parse().expect("an address");
        let count = |outcome: &str| {
            metric(own, &format!("flashweir_cluster_broadcasts_total{{outcome=\"{outcome}\"}}"))
        };
        leader.say(7);
        until("its word counts", WITHIN, || {
            let status = Gateway::ask(own)?;
            (status.cluster["term"] == 7 && status.cluster["leader"] == "false-7").then_some(())
        });
        leader.say(6);
        until("an older term is dropped", WITHIN, || (count("stale") > 2.0).then_some(()));
        let status = Gateway::ask(own).expect("an answer");
        assert_eq!((&status.cluster["term"], &status.cluster["leader"]), (&json!(7), &json!("false-7")));
        leader.repeat();
        until("an answer to another report is refused", WITHIN, || (count("forged") > 0.0).then_some(()));
        drop(gateway);
    }

    fn kill_the_leader(&self) {
        let leader = self.leader();
        let term = leader.term();
        assert!(self.kubelet.signal(leader.ip, Signal::Kill), "no such pod");
        let since = Instant::now();
        let others = || self.gateways().into_iter().filter(|it| it.ip != leader.ip).collect::<Vec<_>>();
        until("a new leader", WITHIN, || others().iter().any(Gateway::is_leader).then_some(()));
        println!(
            "a new leader {:.1} s after the old one was killed (bar 3 s)",
            since.elapsed().as_secs_f64()
        );
        until("shares of its term", WITHIN, || all_share(&others(), 2, term).then_some(()));
        println!("new shares after {:.1} s", since.elapsed().as_secs_f64());
        // The pod is gone for the cluster, too; another takes its place.
        self.delete(leader.ip);
    }

    fn pod(&self, ip: IpAddr) -> String {
        let pods = self.api.get("/api/v1/namespaces/default/pods").body;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let pod = pods.iter().find(|pod| pod["status"]["podIP"] == ip.to_string()).expect("a pod");
        pod["metadata"]["name"].as_str().expect("a name").to_owned()
    }

    /// Asks it to stop, as a roll-out does.
    fn delete(&self, ip: IpAddr) {
        let path = format!("/api/v1/namespaces/default/pods/{}", self.pod(ip));
        let _gone = self.api.try_call("DELETE", &path, None).expect("an answer");
    }

    fn let_one_join(&self) {
        let term = self.leader().term();
        let gateways = self.wait_shared("the third gateway shares", 3, 0);
        assert!(gateways.iter().all(|it| it.term() == term), "joining is no new term: {gateways:?}");
    }

    /// The others stand still meanwhile, so that the Lease is seen as it was left.
    fn stop_the_leader(&self) {
        let leader = self.leader();
        let term = leader.term();
        let others: Vec<IpAddr> =
            self.gateways().iter().map(|it| it.ip).filter(|ip| *ip != leader.ip).collect();
        others.iter().for_each(|ip| assert!(self.kubelet.signal(*ip, Signal::Pause)));
        self.delete(leader.ip);
        until("the Lease is given up", WITHIN, || self.holder().is_empty().then_some(()));
        others.iter().for_each(|ip| assert!(self.kubelet.signal(*ip, Signal::Resume)));
        self.wait_shared("three gateways share under another leader", 3, term);
    }

    fn let_a_former_leader_wake_up(&self) {
        let former = self.leader();
        let term = former.term();
        assert!(self.kubelet.signal(former.ip, Signal::Pause));
        let others = || {
            let ips = ready(&self.api, SERVICE).into_iter().filter(|ip| *ip != former.ip);
            ips.filter_map(Gateway::ask).collect::<Vec<_>>()
        };
        until("another leader", WITHIN, || others().into_iter().find(Gateway::is_leader));
        let others =
            until("shares of its term", WITHIN, || Some(others()).filter(|it| all_share(it, 2, term)));
        let later = others[0].term();
        assert!(self.kubelet.signal(former.ip, Signal::Resume));
        let gateways = self.wait_shared("the former leader follows", 3, term);
        assert!(gateways.iter().all(|it| it.term() >= later), "{gateways:?}");
        assert!(!gateways.iter().any(|it| it.ip == former.ip && it.is_leader()), "{gateways:?}");
    }

    /// Without an API server no gateway leads; every gateway serves, and keeps its share for 15 s. The crowds
    /// are gone before it: a gateway that one is at may refuse any request, the more so after it stood still.
    fn lose_the_api_server(&mut self) {
        self.crowds.clear();
        let before = self.gateways();
        let serves = |it: &Gateway| Client::get(SocketAddr::new(it.ip, 8081), "/").status() == 200;
        until("the gateways serve after the crowd", WITHIN, || before.iter().all(serves).then_some(()));
        let term = before.iter().map(Gateway::term).max().expect("a term");
        let limit_of =
            |gateways: &[Gateway]| gateways.iter().map(|it| it.number("limit")).fold(0.0, f64::max);
        let limit = limit_of(&before);
        self.plane.kill_api_server();
        let since = Instant::now();
        let (mut answers, mut kept_for) = (0, Duration::ZERO);
        let look = |ip: IpAddr| Gateway::ask(ip).expect("an answer");
        until("equal shares", WITHIN, || {
            for gateway in &before {
                assert!(serves(gateway), "{gateway:?}");
                answers += 1;
            }
            let now: Vec<Gateway> = before.iter().map(|it| look(it.ip)).collect();
            if now.iter().all(|it| ["sharing", "holding"].contains(&it.standing())) {
                kept_for = since.elapsed();
            }
            let sum: f64 = now.iter().map(|it| it.number("share")).sum();
            // The limit may change between two of these looks, while a leader still holds its lease.
            let limit = limit.max(limit_of(&now));
            assert!(sum <= 1.2 * limit, "shares of {sum} of {limit}: {now:?}");
            now.iter().all(|it| it.standing() == "equal" && !it.is_leader()).then_some(())
        });
        println!("{answers} answers and shares kept for {kept_for:.1?} without an API server");
        assert!(kept_for >= Duration::from_secs(15), "{kept_for:?}");
        self.plane.start_api_server();
        let back = Instant::now();
        self.wait_shared("all share again", 3, term);
        println!("shares {:.1} s after the API server was back", back.elapsed().as_secs_f64());
        assert_no_other_lease(&self.api);
    }
}

/// The gateways' Lease, and the test's own: there is no other.
fn assert_no_other_lease(api: &KubernetesApi) {
    let leases = api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases").body;
    let names: Vec<&str> = leases["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|lease| lease["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["flashweir-gateways", "others"], "{leases}");
}
