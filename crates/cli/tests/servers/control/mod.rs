//! Goal: `flashweir control` runs copies, waits for those that crash, notifies other programs, and leaves
//! nothing behind. Method: the real binary with real processes on loopback.

mod moving;

use flashweir_testkit::{
    Client, Flashweir, GatewayBuilder, Process, Signal, eventually, reserve_address, reserve_ports, until,
};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
const STOPS_WITHIN: Duration = Duration::from_secs(20);

fn start(directory: &Path, config: &str) -> Process {
    std::fs::write(directory.join("control.toml"), config).expect("a writable directory");
    Flashweir::new(BINARY).start(directory, ["control", "--config", "control.toml"])
}

fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// No gateway answers: the fewest copies run all the same, and one that is killed comes again.
#[test]
fn copies_run_without_a_gateway_and_stop_with_their_supervisor() {
    let directory = TempDir::new().expect("a directory");
    let (admin, first) = (reserve_address(), reserve_ports(3));
    let config = format!(
        "admin = \"{admin}\"\ninterval_s = 0.5\nmin = 2\nmax = 3\n[copies]\nfirst_port = {first}\n\
         command = [{BINARY:?}, \"origin\", \"--listen\", \"127.0.0.1:{{port}}\", \"--iterations-per-ms\", \"1000\"]\n"
    );
    let control = start(directory.path(), &config);
    eventually("both copies serve", || {
        let serves = control.stderr().matches("copy serves").count();
        (serves >= 2 && is_open(first) && is_open(first + 1)).then_some(())
    });
    assert!(!is_open(first + 2), "only the fewest run");
    eventually("the gateway is missed", || control.stderr().contains("gateway not heard").then_some(()));
    control.signal(Signal::Terminate);
    let finished = control.finish(STOPS_WITHIN);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(!is_open(first) && !is_open(first + 1), "{}", finished.stderr);
    assert_eq!(finished.stderr.matches("gateway not heard").count(), 1, "said once: {}", finished.stderr);
}

#[test]
fn a_command_that_crashes_at_once_waits_longer_each_time() {
    let directory = TempDir::new().expect("a directory");
    let config = format!(
        "admin = \"{}\"\nmax = 1\n[copies]\nfirst_port = {}\ncommand = [\"/bin/false\", \"{{port}}\"]\n",
        reserve_address(),
        reserve_ports(1)
    );
    let control = start(directory.path(), &config);
    eventually("two crashes", || control.stderr().contains("again_in_s=2").then_some(()));
    control.signal(Signal::Terminate);
    let finished = control.finish(STOPS_WITHIN);
    assert_eq!(finished.code(), Some(0));
    for wait in ["again_in_s=1", "again_in_s=2"] {
        assert_eq!(finished.stderr.matches(wait).count(), 1, "{}", finished.stderr);
    }
}

#[test]
fn a_program_of_the_users_is_told_how_many() {
    let directory = TempDir::new().expect("a directory");
    let config = format!(
        "admin = \"{}\"\nmin = 2\nmax = 5\n[exec]\ncommand = [\"/bin/sh\", \"-c\", \"echo {{servers}} > ordered\"]\n",
        reserve_address()
    );
    let control = start(directory.path(), &config);
    let ordered = directory.path().join("ordered");
    eventually("an order", || {
        std::fs::read_to_string(&ordered).ok().filter(|text| text.trim() == "2").map(drop)
    });
    control.signal(Signal::Interrupt);
    assert_eq!(control.finish(STOPS_WITHIN).code(), Some(0));
}

#[test]
fn a_wrong_file_is_named_in_one_line_with_exit_code_64() {
    let directory = TempDir::new().expect("a directory");
    let finished = start(directory.path(), "admin = \"127.0.0.1:9\"\n").finish(STOPS_WITHIN);
    assert_eq!(finished.code(), Some(64));
    assert_eq!(finished.stderr, "flashweir: control.toml: expected one of [copies], [exec] and [webhook]\n");
}

/// Goal: copies are used soon after they serve, though the gateway has known their ports as dead for a while.
/// It failed with a gateway that asked a server that was gone at its own, ever slower pace.
#[test]
fn a_gateway_uses_copies_as_soon_as_they_serve() {
    const COPIES: u16 = 4;
    let first = reserve_ports(COPIES);
    let urls: Vec<String> = (first..first + COPIES).map(|port| format!("http://127.0.0.1:{port}")).collect();
    let gateway =
        GatewayBuilder::new(&Flashweir::new(BINARY)).upstreams(urls.iter().map(String::as_str)).start();
    let in_use = || {
        let status = gateway.status();
        let upstreams = status["upstreams"].as_array().map_or(&[][..], Vec::as_slice);
        upstreams.iter().filter(|upstream| upstream["healthy"] == true).count()
    };
    until("all ports known as dead", STOPS_WITHIN, || {
        assert!(matches!(gateway.get("/").status(), 502 | 503));
        (in_use() == 0).then_some(())
    });
    let directory = TempDir::new().expect("a directory");
    let listen = reserve_address();
    let config = format!(
        "admin = \"{}\"\nlisten = \"{listen}\"\ninterval_s = 0.5\nmin = {COPIES}\nmax = {COPIES}\n[copies]\nfirst_port = {first}\n\
         command = [{BINARY:?}, \"origin\", \"--listen\", \"127.0.0.1:{{port}}\", \"--iterations-per-ms\", \"1000\"]\n",
        gateway.admin()
    );
    let control = start(directory.path(), &config);
    eventually("all copies serve", || {
        (control.stderr().matches("copy serves").count() == usize::from(COPIES)).then_some(())
    });
    let since = std::time::Instant::now();
    until("all copies are used", Duration::from_secs(10), || (in_use() == usize::from(COPIES)).then_some(()));
    println!("all are used {:?} after they served", since.elapsed());
    assert_eq!(gateway.get("/").status(), 200);
    eventually("its own metrics", || {
        let metrics = Client::get(listen, "/metrics").text();
        let known = [
            "flashweir_servers_ready{service=\"default\"} 4",
            "flashweir_servers_ordered{service=\"default\"} 4",
            "flashweir_provisioning_crashes_total{service=\"default\"} 0",
        ];
        known.iter().all(|line| metrics.contains(line)).then_some(())
    });
    control.signal(Signal::Terminate);
    assert_eq!(control.finish(STOPS_WITHIN).code(), Some(0));
}
