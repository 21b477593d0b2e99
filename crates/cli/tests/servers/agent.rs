//! Goal: `flashweir agent` names what a process is short of, the gateway's verdict says it, and both cost
//! little. Method: the real binary beside real processes on loopback.
//!
//! Twin in virtual time of the tests under load: `agent`, `each_shortage_has_its_word`.

use flashweir_testkit::{
    Client, Flashweir, GatewayBuilder, Process, Signal, Upstream, reserve_address, until,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
/// Means settle within some seconds, on a machine that other tests keep busy.
const WITHIN: Duration = Duration::from_secs(40);

struct Agent {
    process: Process,
    address: SocketAddr,
    _directory: TempDir,
}

impl Agent {
    fn start(arguments: &[&str]) -> Self {
        let (directory, address) = (TempDir::new().expect("a directory"), reserve_address());
        let listen = address.to_string();
        let all = [&["agent", "--listen", &listen][..], arguments].concat();
        let process = Flashweir::new(BINARY).start(directory.path(), all);
        until("the agent", WITHIN, || Client::try_connect(address).ok());
        Self { process, address, _directory: directory }
    }

    fn load(&self) -> Option<Value> {
        let answer = Client::get(self.address, "/load");
        (answer.status() == 200).then(|| serde_json::from_str(&answer.text()).expect("JSON"))
    }
}

/// A process that does nothing but work, in one thread.
fn busy() -> (Process, TempDir) {
    let directory = TempDir::new().expect("a directory");
    let process = Process::start(Path::new("/bin/sh"), directory.path(), ["-c", "while :; do :; done"]);
    (process, directory)
}

fn end(process: Process) {
    process.signal(Signal::Kill);
    process.finish(WITHIN);
}

#[test]
fn a_busy_process_is_short_of_a_processor_and_a_sleeping_one_of_nothing() {
    let (working, _directory) = busy();
    let directory = TempDir::new().expect("a directory");
    let sleeping = Process::start(Path::new("/bin/sleep"), directory.path(), ["1000"]);
    let of_working = Agent::start(&["--pid", &working.id().to_string()]);
    let of_sleeping = Agent::start(&["--pid", &sleeping.id().to_string()]);
    let load =
        until("the processor", WITHIN, || of_working.load().filter(|load| load["short_of"] == "processor"));
    assert!(load["processor"]["used"].as_f64().is_some_and(|used| used > 0.0), "{load}");
    assert!(load["orca"]["cpu_utilization"].is_f64(), "{load}");
    let load = until("a report", WITHIN, || of_sleeping.load());
    assert_eq!(load["short_of"], "nothing", "{load}");
    assert!(load["memory"]["utilisation"].as_f64().is_some_and(|part| part > 0.0 && part < 1.0), "{load}");
    let answer = Client::get(of_sleeping.address, "/load");
    let field = answer.field("endpoint-load-metrics").expect("ORCA's field").to_owned();
    assert!(field.starts_with("JSON {\"cpu_utilization\":"), "{field}");
    end(working);
    until("the end is reported", WITHIN, || {
        let answer = Client::get(of_working.address, "/load");
        (answer.status() == 503)
            .then(|| assert!(answer.text().contains("there is no process"), "{}", answer.text()))
    });
    end(sleeping);
}

/// Connections in the accept queue of a service that does not accept are seen.
#[test]
fn connections_that_wait_are_counted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let agent = Agent::start(&["--port", &port.to_string()]);
    let _waiting: Vec<_> =
        (0..3).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection")).collect();
    until("three", WITHIN, || (agent.load()?["connections"]["unaccepted"] == 3).then_some(()));
}

#[test]
#[ignore = "real load: make test-load"]
fn the_verdict_names_what_the_machine_is_short_of_under_load() {
    let (working, _directory) = busy();
    let agent = Agent::start(&["--pid", &working.id().to_string()]);
    let upstream = Upstream::saying("here");
    let gateway = GatewayBuilder::new(&Flashweir::new(BINARY))
        .upstream(&upstream.url())
        .text("upstream.agents", &format!("http://{}", agent.address))
        .start();
    let status = until("the word", WITHIN, || {
        let status = gateway.status();
        (status["verdict"]["machine_short_of"] == "processor").then_some(status)
    });
    assert_eq!(status["services"][0]["machines"]["short_of"], "processor", "{status}");
    let explanation = status["verdict"]["explanation"].as_str().unwrap_or_default();
    assert!(explanation.contains("short of: processor"), "{explanation}");
    let metrics = gateway.metrics();
    let series = "flashweir_machine_short_of{service=\"default\",resource=\"processor\"}";
    assert_eq!(metrics.value(series), 1.0);
    // Without its agent the gateway says nothing, and serves.
    end(agent.process);
    until("the word's end", WITHIN, || {
        gateway.status()["verdict"]["machine_short_of"].is_null().then_some(())
    });
    assert_eq!(gateway.get("/").text(), "here");
    assert!(gateway.metrics().value("flashweir_upstream_agent_answers_total{answer=\"no_answer\"}") >= 1.0);
    end(working);
}

/// Goal: a service that waits for a database is short of nothing of its machine's, however busy others keep
/// that. Method: an origin that only waits.
#[test]
fn a_service_that_waits_for_a_database_is_short_of_nothing() {
    let directory = TempDir::new().expect("a directory");
    let address = reserve_address();
    let listen = address.to_string();
    let origin = Flashweir::new(BINARY).start(
        directory.path(),
        [
            "origin",
            "--listen",
            &listen,
            "--workers",
            "4",
            "--work-ms",
            "0.1",
            "--wait-ms",
            "50",
            "--iterations-per-ms",
            "1000",
        ],
    );
    until("the origin", WITHIN, || Client::try_connect(address).ok());
    let agent = Agent::start(&["--pid", &origin.id().to_string()]);
    let gateway = GatewayBuilder::new(&Flashweir::new(BINARY))
        .upstream(&format!("http://{address}"))
        .text("upstream.agents", &format!("http://{}", agent.address))
        .start();
    let status = until("the word", WITHIN, || {
        let _answer = gateway.get("/");
        let status = gateway.status();
        status["verdict"]["machine_short_of"].is_string().then_some(status)
    });
    assert_eq!(status["verdict"]["machine_short_of"], "nothing", "{status}");
    let explanation = status["verdict"]["explanation"].as_str().unwrap_or_default();
    assert!(explanation.contains("a database"), "{explanation}");
}

#[test]
fn what_is_not_there_is_named_with_exit_code_64() {
    let run = |arguments: &[&str]| {
        let directory = TempDir::new().expect("a directory");
        let all = [&["agent", "--listen", "127.0.0.1:0"][..], arguments].concat();
        Flashweir::new(BINARY).start(directory.path(), all).finish(WITHIN)
    };
    let finished = run(&["--pid", "1073741824"]);
    assert_eq!(finished.code(), Some(64));
    assert_eq!(
        finished.stderr,
        "flashweir: there is no process 1073741824; expected the id of a running one\n"
    );
    let finished = run(&["--cgroup", "/nowhere/shop"]);
    assert_eq!(finished.code(), Some(64));
    assert_eq!(
        finished.stderr,
        "flashweir: /nowhere/shop is not a control group of version 2: it has no cpu.stat\n"
    );
    assert_eq!(run(&["--pid", "1", "--cgroup", "/x"]).code(), Some(64), "one of them");
}

/// Goal: an agent that is asked each second stays cheap. The bars (0.5 % of a core, 10 MB) are for a release
/// build: `make bench-agent`; a debug build on a busy machine may take ten times as much time.
#[test]
#[ignore = "real load: make test-load"]
fn an_agent_costs_little_under_load() {
    let own = std::process::id().to_string();
    let agent = Agent::start(&["--pid", &own, "--port", "80"]);
    until("a report", WITHIN, || agent.load());
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.process.id())).expect("it runs");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        let times = fields.split(' ').skip(11).take(2);
        times.map(|field| field.parse::<u64>().expect("ticks")).sum::<u64>()
    };
    let (began, before) = (Instant::now(), ticks());
    let over = began + Duration::from_secs(5);
    until("five seconds", WITHIN, || (Instant::now() >= over).then_some(()));
    agent.load().expect("a report");
    let share = (ticks() - before) as f64 / 100.0 / began.elapsed().as_secs_f64();
    println!("{:.2} % of a core, {} kB", share * 100.0, agent.process.resident_bytes() >> 10);
    assert!(share < 0.05, "{share} of a core");
}
