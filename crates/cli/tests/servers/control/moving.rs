//! Measurement, by `make bench-pool`: two applications share a pool of servers, and a crowd comes to one and
//! then to the other (figure 7 of the Cataclysm paper, CAT-F7, scaled: as many servers, the same ratio of
//! crowd to server, times divided by twenty-five). Beside it, at the same time, the same crowds with servers
//! that stay where they are.
//!
//! Real processes: two gateways, `flashweir control` with one pool, and origins whose requests wait without
//! using the processor, so that all fit on one machine.

use crate::control::{BINARY, STOPS_WITHIN, start};
use flashweir_testkit::{
    Client, Flashweir, Gateway, GatewayBuilder, Load, Process, reserve_address, reserve_ports, until,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Servers of both applications, and what each keeps and may have: as in the paper.
const POOL: u16 = 11;
const MIN: u16 = 3;
const MAX: u16 = 8;
/// One server: three requests at once of 100 ms.
const SERVER_RPS: f64 = 30.0;
/// The paper has 100/s for servers of 60/s.
const USUAL_RPS: f64 = 50.0;
/// Each doubling of the crowd, to sixteen times the usual; and when it is gone.
const STEPS_S: [f64; 4] = [12.0, 24.0, 36.0, 48.0];
const CROWD_ENDS_S: f64 = 84.0;
/// The second application's crowd is alike, this much later.
const LATER_S: f64 = 92.0;
const ENDS_S: f64 = 190.0;
const NAMES: [&str; 2] = ["shop", "search"];
const EVERY: Duration = Duration::from_secs(4);

/// Two applications with a controller.
struct Lane {
    name: &'static str,
    gateways: [Gateway; 2],
    metrics: SocketAddr,
    control: Process,
    _directory: TempDir,
}

/// Revenue and servers of both applications of a lane, at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    at_s: f64,
    admitted: [u64; 2],
    servers: [u32; 2],
}

impl Lane {
    /// `servers`: the fewest and the most that each application has.
    fn begin(name: &'static str, servers: [(u16, u16); 2]) -> Self {
        let directory = TempDir::new().expect("a directory");
        let ports = NAMES.map(|_| reserve_ports(MAX));
        let gateways = [0, 1].map(|it| {
            let urls: Vec<String> =
                (ports[it]..ports[it] + MAX).map(|port| format!("http://127.0.0.1:{port}")).collect();
            let builder =
                GatewayBuilder::new(&Flashweir::new(BINARY)).upstreams(urls.iter().map(String::as_str));
            builder
                .text("gateway.name", NAMES[it])
                .set("gateway.workers", "1")
                .text("flash_crowd.mode", "off")
                .start()
        });
        let metrics = reserve_address();
        let mut config = format!(
            "admin = \"{}\"\nlisten = \"{metrics}\"\ninterval_s = 0.5\nstart_up_s = 0.5\ntarget_s = 1\npool = {POOL}\n",
            gateways[0].admin()
        );
        for it in [0, 1] {
            let (min, max) = servers[it];
            config += &format!(
                "[[service]]\nname = \"{}\"\nadmin = \"{}\"\nmin = {min}\nmax = {max}\n[service.copies]\nfirst_port = {}\nhealth = \"/healthz\"\n\
                 command = [{BINARY:?}, \"origin\", \"--listen\", \"127.0.0.1:{{port}}\", \"--workers\", \"3\", \"--work-ms\", \"0\", \
                 \"--wait-ms\", \"100\", \"--iterations-per-ms\", \"1000\"]\n",
                NAMES[it],
                gateways[it].admin(),
                ports[it],
            );
        }
        let control = start(directory.path(), &config);
        Self { name, gateways, metrics, control, _directory: directory }
    }

    fn look(&self, at_s: f64) -> Row {
        let metrics = Client::get(self.metrics, "/metrics").text();
        let servers = NAMES.map(|name| {
            let series = format!("flashweir_servers_ready{{service=\"{name}\"}} ");
            let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
            line.and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0) as u32
        });
        let admitted = [0, 1].map(|it| {
            let status = self.gateways[it].status();
            status["requests"]["admitted"].as_u64().expect("a number of requests")
        });
        Row { at_s, admitted, servers }
    }

    fn crowds(&self) -> Vec<Load> {
        let crowd = |(gateway, later): (&Gateway, f64)| {
            let mut words = vec!["--rate".to_owned(), format!("{USUAL_RPS}")];
            let doublings =
                STEPS_S.iter().zip(1..).map(|(at, power)| (USUAL_RPS * f64::from(1 << power), *at));
            for (rate, at) in doublings.chain([(USUAL_RPS, CROWD_ENDS_S)]) {
                words.extend(["--step".to_owned(), format!("{rate}@{}s", at + later)]);
            }
            words.extend([
                "--duration".to_owned(),
                format!("{ENDS_S}s"),
                "--sources".to_owned(),
                "2000".to_owned(),
            ]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Load::start(&Flashweir::new(BINARY), &format!("http://{}/", gateway.address()), &words)
        };
        self.gateways.iter().zip([0.0, LATER_S]).map(crowd).collect()
    }
}

#[test]
#[ignore = "a measurement of three minutes: make bench-pool"]
fn servers_move_to_the_application_to_which_the_crowd_comes() {
    let half = (POOL / 2, POOL - POOL / 2);
    let lanes =
        [Lane::begin("moving", [(MIN, MAX); 2]), Lane::begin("fixed", [(half.0, half.0), (half.1, half.1)])];
    until("the first servers", STOPS_WITHIN, || {
        let has_some = |lane: &Lane| lane.look(0.0).servers.iter().all(|count| *count >= u32::from(MIN));
        lanes.iter().all(has_some).then_some(())
    });
    let begun = Instant::now();
    let crowds: Vec<Load> = lanes.iter().flat_map(Lane::crowds).collect();
    let mut rows: Vec<[Row; 2]> = Vec::new();
    while begun.elapsed().as_secs_f64() < ENDS_S {
        let next = EVERY * (rows.len() as u32 + 1);
        std::thread::park_timeout(next.saturating_sub(begun.elapsed()));
        rows.push(lanes.each_ref().map(|lane| lane.look(begun.elapsed().as_secs_f64())));
    }
    crowds.into_iter().for_each(|crowd| drop(crowd.finish(STOPS_WITHIN * 3)));
    let last = lanes.each_ref().map(|lane| lane.look(ENDS_S));
    println!("   at  moving: servers, admitted/s          fixed: servers, admitted/s");
    let mut before = [Row::default(); 2];
    for now in &rows {
        let cells = [0, 1].map(|lane| {
            let (now, before): (Row, Row) = (now[lane], before[lane]);
            let rate = |it: usize| (now.admitted[it] - before.admitted[it]) as f64 / (now.at_s - before.at_s);
            format!("{:>2} {:>2}  {:>6.1} {:>6.1}", now.servers[0], now.servers[1], rate(0), rate(1))
        });
        println!("{:>5.0}  {}                  {}", now[0].at_s, cells[0], cells[1]);
        before = *now;
    }
    let revenue = last.map(|row| row.admitted.iter().sum::<u64>());
    for (lane, revenue) in lanes.iter().zip(revenue) {
        println!("{}: revenue {revenue} (one for each request that was admitted)", lane.name);
    }
    println!("moving earns {:.3} of fixed", revenue[0] as f64 / revenue[1] as f64);
    println!("one server serves {SERVER_RPS}/s");
    let most = |from: f64, to: f64, it: usize| {
        let inside = rows.iter().map(|row| row[0]).filter(|row| (from..to).contains(&row.at_s));
        inside.map(|row| row.servers[it]).max().unwrap_or(0)
    };
    let (first, second) = (most(0.0, CROWD_ENDS_S, 0), most(LATER_S, ENDS_S, 1));
    let all_s =
        rows.iter().map(|row| row[0]).find(|row| row.at_s > LATER_S && row.servers[1] == u32::from(MAX));
    let waited_s = all_s.map_or(f64::INFINITY, |row| row.at_s - LATER_S - STEPS_S[0]);
    println!("the second crowd has {MAX} servers {waited_s:.0} s after its first step");
    println!(
        "most servers: {first} in the first crowd, {second} in the second (the paper and the simulator: 8, 8)"
    );
    let orders = lanes[0].control.stderr();
    println!("orders of the lane that moves:");
    orders.lines().filter(|line| line.contains("servers ordered")).for_each(|line| println!("{line}"));
    for lane in lanes {
        lane.control.signal(flashweir_testkit::Signal::Terminate);
        assert_eq!(lane.control.finish(STOPS_WITHIN).code(), Some(0));
    }
    assert!(first >= 7 && second >= 7 && revenue[0] > revenue[1], "{first} {second} {revenue:?}");
    // The first crowd has left by then: it had to wait 52 s for what was kept for that.
    assert!(waited_s <= 2.0 * STEPS_S[0], "{waited_s} s");
}
