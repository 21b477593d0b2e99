//! Cost of the reports of 1,000 gateways to their leader over its transport: a real `flashweir run` that
//! leads by `cluster.listen`, and 1,000 connections on loopback that are kept, ten sealed reports a second on
//! each, every one answered. `make bench-leader` prints it beside the cost without a network.
//!
//! Counted is the processor time of the leader's process, kernel included, by the scheduler's account of all
//! its threads. GATEWAYS and SECONDS in the environment change number and length.

#![expect(clippy::disallowed_methods, reason = "what is measured takes its time")]

#[path = "../proxy_cost/cpu.rs"]
mod cpu;
mod report;
mod reporter;

use flashweir_testkit::{
    Flashweir, Gateway, GatewayBuilder, Origin, Upstream, number_from_environment, reserve_address,
};
use report::Service;
use reporter::{Seen, Times, offset, report};
use ring::hmac;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// Between two reports of a gateway.
const EVERY: Duration = Duration::from_millis(100);
/// As in a gateway: a leader that is later than this counts as silent.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// The leader listens for half a second, and gateways know its term by then.
const WARM_UP: Duration = Duration::from_secs(2);
/// For how long the leader's cost without any report is measured.
const IDLE_FOR: Duration = Duration::from_secs(2);
/// Connections that are made one after the other need not be due at once.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Open files beside one for each gateway, of this process and of the leader.
const OTHER_FILES: u64 = 64;
/// Of a core: what the reports of 1,000 gateways may cost.
const CORE_SHARE_MAX: f64 = 0.5;
/// Fewer answers than this part of ten a second and gateway: the machine was too busy to say what they cost.
const ANSWERED_SHARE_MIN: f64 = 0.95;
const SECRET: &str = "correct-horse-battery-staple";

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return Ok(());
    }
    let count: usize = number_from_environment("GATEWAYS", 1_000);
    let seconds: u64 = number_from_environment("SECONDS", 10);
    raise_open_files(count as u64 + OTHER_FILES)?;
    let origin = Origin::start_with(&binary(), &["--workers", "1"]);
    let service = service(&origin)?;
    let listen = reserve_address();
    let leader = gateway(&origin).text("cluster.listen", &listen.to_string()).start();
    let idle = core_share(&leader, || std::thread::sleep(IDLE_FOR));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = LocalSet::new().block_on(&runtime, measure(service, &leader, listen, count, seconds))?;
    measured.print(count, idle);
    let counted = leader.metrics().value("flashweir_cluster_reports_total{outcome=\"counted\"}");
    if counted < measured.answers() as f64 || measured.without_share > 0 {
        let reason = leader.stderr();
        return Err(format!(
            "{counted} reports counted, {} gateways without a share: {reason}",
            measured.without_share
        )
        .into());
    }
    measured.judge(count, seconds)
}

fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// # Errors
/// This process may not have as many open files.
fn raise_open_files(needed: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        let maximum = limit.maximum.unwrap_or(u64::MAX);
        format!("{needed} open files are needed, at most {maximum} are allowed ({error}): raise `ulimit -Hn`, or set GATEWAYS lower")
    })
}

fn gateway(origin: &Origin) -> GatewayBuilder {
    let builder = GatewayBuilder::new(&binary()).upstream(&origin.url()).text("gateway.name", "shop");
    let key = format!("{} {SECRET}\n", report::KEY_NUMBER);
    std::fs::write(builder.directory().join("cluster.keys"), key).expect("a writable directory");
    builder.set("gateway.workers", "1").text("cluster.keys_file", "cluster.keys")
}

/// The service as a real gateway reports it.
fn service(origin: &Origin) -> Result<Rc<Service>, Box<dyn Error>> {
    let (sender, reports) = mpsc::sync_channel(1);
    let listener = Upstream::start(move |connection| {
        while let Some(request) = connection.read_request() {
            // One is enough.
            let _full = sender.try_send(request.body);
            connection.answer(403, "", "");
        }
    });
    let _follower = gateway(origin).text("cluster.leader", &listener.address().to_string()).start();
    let report = reports.recv_timeout(CONNECT_WITHIN)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let service = Service::of_report(key, &report)
        .ok_or("the format of reports has changed: change benches/leader/report.rs")?;
    Ok(Rc::new(service))
}

/// Part of a core that the gateway uses while this runs.
fn core_share(gateway: &Gateway, run: impl FnOnce()) -> f64 {
    let (from, before) = (Instant::now(), cpu::used(gateway.process().id()));
    run();
    share_since(gateway, from, before)
}

fn share_since(gateway: &Gateway, from: Instant, before: Duration) -> f64 {
    (cpu::used(gateway.process().id()) - before).as_secs_f64() / from.elapsed().as_secs_f64()
}

/// Measurements of the leader.
struct Measured {
    core_share: f64,
    took_s: Vec<f64>,
    bytes: (usize, usize),
    without_share: usize,
}

async fn measure(
    service: Rc<Service>,
    leader: &Gateway,
    listen: SocketAddr,
    count: usize,
    seconds: u64,
) -> Result<Measured, Box<dyn Error>> {
    let mut streams = Vec::with_capacity(count);
    for place in 0..count {
        let stream = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(listen)).await?;
        let stream =
            stream.map_err(|error| format!("connection {} of {count} to the leader: {error}", place + 1))?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let begins = Instant::now() + EVERY;
    let times =
        Times { measured_from: begins + WARM_UP, ends: begins + WARM_UP + Duration::from_secs(seconds) };
    let reporter = |(place, stream)| {
        let first_at = begins + offset(place, count);
        tokio::task::spawn_local(report(service.clone(), stream, listen, place as u64 + 1, first_at, times))
    };
    let reporters: Vec<_> = streams.into_iter().enumerate().map(reporter).collect();
    tokio::time::sleep_until(times.measured_from.into()).await;
    let (from, before) = (Instant::now(), cpu::used(leader.process().id()));
    tokio::time::sleep_until(times.ends.into()).await;
    let core_share = share_since(leader, from, before);
    let mut measured = Measured { core_share, took_s: Vec::new(), bytes: (0, 0), without_share: 0 };
    for reporter in reporters {
        let Seen { took_s, bytes, has_share } = reporter.await??;
        measured.took_s.extend(took_s);
        measured.bytes = bytes;
        measured.without_share += usize::from(!has_share);
    }
    measured.took_s.sort_by(f64::total_cmp);
    Ok(measured)
}

impl Measured {
    fn answers(&self) -> usize {
        self.took_s.len()
    }

    fn quantile_ms(&self, part: f64) -> f64 {
        let place = (self.took_s.len() as f64 * part) as usize;
        self.took_s.get(place).or(self.took_s.last()).map_or(f64::NAN, |took_s| took_s * 1e3)
    }

    fn print(&self, count: usize, idle: f64) {
        println!(
            "a leader of {count} gateways over HTTP: {:.1} % of a core, {:.1} % without reports; reports of {} bytes, answers of {} bytes after {:.1} ms (median) and {:.1} ms (p99)",
            self.core_share * 100.0,
            idle * 100.0,
            self.bytes.0,
            self.bytes.1,
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
        );
    }

    /// # Errors
    /// The cost is not known, or more than it may be.
    fn judge(&self, count: usize, seconds: u64) -> Result<(), Box<dyn Error>> {
        let wanted = count as f64 * seconds as f64 / EVERY.as_secs_f64();
        let answered = self.answers() as f64 / wanted;
        println!("{} answers, {:.1} % of ten a second and gateway", self.answers(), answered * 100.0);
        if answered < ANSWERED_SHARE_MIN {
            return Err("too few reports to say what they cost: the machine is too busy".into());
        }
        if self.core_share > CORE_SHARE_MAX {
            return Err(format!("{:.0} % of a core at most", CORE_SHARE_MAX * 100.0).into());
        }
        Ok(())
    }
}
