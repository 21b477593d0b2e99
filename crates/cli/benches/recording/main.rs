//! Cost of a recording: CPU time of a gateway with `--record` over one without, its bytes, and how fast it is
//! replayed.
//!
//! Three times as many requests as the origin can do come all the time: the dearest case, for every planner
//! is at work. Both gateways take turns, in reversed order every other round, so that other work of the
//! machine falls on both; CPU time is read from the scheduler's own account, and ratios are medians over
//! rounds. `make bench-recording` runs it; ROUNDS and SECONDS in the environment change its length.

#[path = "../proxy_cost/cpu.rs"]
mod cpu;

use flashweir_testkit::{number_from_environment, reserve_address};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
/// Time of a request at the origin, and how many come: three times what one worker can do.
const WORK_MS: &str = "5";
const RATE: &str = "600";
/// Requests before anything is measured.
const WARM_UP_S: u64 = 2;

/// Results of one run.
struct Measured {
    /// Of the whole gateway, per cent of a core.
    cpu_percent: f64,
    recorded: Option<Recorded>,
}

struct Recorded {
    /// Of the thread that writes, per cent of a core.
    writer_percent: f64,
    bytes_per_s: f64,
    /// Seconds of recording replayed in a second.
    replay_speed: f64,
}

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let rounds = number_from_environment("ROUNDS", 5);
    let seconds = number_from_environment("SECONDS", 15);
    let directory = tempfile::tempdir().expect("a directory");
    println!(
        "{rounds} rounds of {seconds} s each; {RATE} requests/s to an origin of one worker that takes {WORK_MS} ms\n"
    );
    let (mut more, mut writer, mut hourly_mb, mut speeds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = directory.path().join(format!("round-{round}"));
        let mut runs = [None, Some(&*file)];
        if round % 2 == 1 {
            runs.reverse();
        }
        let measured = runs.map(|file| (file.is_some(), run(file, seconds)));
        let cpu = |records: bool| {
            measured.iter().find(|(did, _)| *did == records).map_or(0.0, |(_, run)| run.cpu_percent)
        };
        println!("round {}: {:.2} % of a core without, {:.2} % with", round + 1, cpu(false), cpu(true));
        more.push(cpu(true) - cpu(false));
        for recorded in measured.iter().filter_map(|(_, run)| run.recorded.as_ref()) {
            writer.push(recorded.writer_percent);
            hourly_mb.push(recorded.bytes_per_s * 3_600.0 / 1e6);
            speeds.push(recorded.replay_speed);
        }
    }
    println!();
    tell("the thread that writes, % of a core", writer, "at most 1");
    tell(
        "the whole gateway with less without, % of a core",
        more,
        "at most 1; noise of the machine included",
    );
    tell("recording, MB an hour", hourly_mb, "at most 20");
    tell("replay, times as fast as it was", speeds, "at least 1,000");
}

fn run(recording: Option<&Path>, seconds: u64) -> Measured {
    let [origin, gateway, admin] = [(); 3].map(|()| reserve_address());
    let _origin =
        start("0", &["origin", "--listen", &origin.to_string(), "--workers", "1", "--work-ms", WORK_MS]);
    wait_for(origin);
    let (listen, admin) = (gateway.to_string(), admin.to_string());
    let upstream = format!("http://{origin}");
    let mut arguments = vec!["run", "--listen", &listen, "--admin", &admin, "--upstream", &upstream];
    let name = recording.map(|file| file.display().to_string());
    if let Some(name) = &name {
        arguments.extend(["--record", name]);
    }
    let process = start("1", &arguments);
    wait_for(gateway);
    let size = |file: &Path| file.metadata().map_or(0, |file| file.len());
    load(gateway, WARM_UP_S);
    let (cpu_before, bytes_before, begun) = (cpu::used(process.0.id()), recording.map(size), Instant::now());
    load(gateway, seconds);
    let cpu = cpu::used(process.0.id()) - cpu_before;
    let (bytes, took_s) = (recording.map(size), begun.elapsed().as_secs_f64());
    let percent = |cpu: Duration| cpu.as_secs_f64() / took_s * 100.0;
    let writer_percent = percent(used_by_thread(process.0.id(), "recorder"));
    end(process);
    let recorded = recording.zip(bytes_before).zip(bytes).map(|((file, before), after)| Recorded {
        writer_percent,
        bytes_per_s: (after - before) as f64 / took_s,
        replay_speed: replay_speed(file, took_s + WARM_UP_S as f64),
    });
    Measured { cpu_percent: percent(cpu), recorded }
}

/// Sends the crowd.
fn load(gateway: SocketAddr, seconds: u64) {
    let url = format!("http://{gateway}/");
    let duration = format!("{seconds}s");
    let arguments = ["load", &url, "--rate", RATE, "--duration", &duration, "--sources", "1000", "--json"];
    let output = Command::new("taskset").args(["-c", "0", BINARY]).args(arguments).output().expect("taskset");
    assert!(output.status.success(), "{output:?}");
}

/// CPU time that the process's threads of this name have used.
fn used_by_thread(pid: u32, name: &str) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = threads.map(|thread| thread.path()).filter_map(|thread| {
        let is_called = fs::read_to_string(thread.join("comm")).ok()?;
        let account = fs::read_to_string(thread.join("schedstat")).ok()?;
        (is_called.trim() == name).then_some(account.split_whitespace().next()?.parse::<u64>().ok()?)
    });
    Duration::from_nanos(of_thread.sum())
}

fn replay_speed(file: &Path, recorded_s: f64) -> f64 {
    let begun = Instant::now();
    let output = Command::new(BINARY).arg("replay").arg(file).output().expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    recorded_s / begun.elapsed().as_secs_f64()
}

/// A process of our own, ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(core: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new("taskset");
    command.args(["-c", core, BINARY]).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    Ended(command.stderr(Stdio::null()).spawn().expect("taskset runs"))
}

/// Asks the gateway to end, so that its recording has an end.
fn end(mut process: Ended) {
    let id = process.0.id().to_string();
    let asked = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
    assert!(asked.success(), "the gateway is gone");
    let until = Instant::now() + Duration::from_secs(10);
    while process.0.try_wait().expect("a child").is_none() && Instant::now() < until {
        std::thread::yield_now();
    }
}

fn wait_for(address: SocketAddr) {
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "nothing listens on {address} after ten seconds");
        std::thread::yield_now();
    }
}

fn tell(what: &str, mut values: Vec<f64>, bar: &str) {
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else { return };
    let median = values[values.len() / 2];
    println!("{what}: {median:.2} [{least:.2} to {most:.2}], {bar}");
}
