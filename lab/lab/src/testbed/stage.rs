//! One run from building the network to taking it down.

use super::crowd::{RunClients, add_beside, add_crowd, add_second};
use super::instruments::{Counters, read_rates};
use super::network::{CROWD, FAR, GUESTS, NEIGHBOUR, Network, ROUTER, SECOND};
use super::protection::ActiveProtection;
use super::protection_record::ProtectionRecord;
use super::servers::{Servers, send_without_end};
use crate::experiments::testbed::{Beside, Fastest, Record, Second, TestbedRun};
use anyhow::{Context as _, anyhow, bail};
use flashweir_load::{LoadPlan, LoadResult, StopFlag};
use flashweir_testbed::Testbed;
use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle, park_timeout};
use std::time::{Duration, Instant, SystemTime};

/// From the start of the load generators to the first arrival: they make their schedules in that time, also
/// where much else is going on.
const LEAD: Duration = Duration::from_secs(2);
const ONE_SECOND: Duration = Duration::from_secs(1);

/// Builds the scene, sends the crowd, and takes everything down.
///
/// # Errors
/// A requirement that this machine lacks; a part that does not start; a `stop`.
pub(crate) fn perform(run: &TestbedRun, stop: &StopFlag) -> anyhow::Result<Record> {
    let scene = &run.scene;
    let network = Network::build(scene)?;
    let servers = Servers::start(&network, scene)?;
    let active = ActiveProtection::start(&network, run)?;
    let counters = Counters::open(&network, servers.group.as_ref())?;
    let tap = network.testbed.tap(CROWD)?;
    let download = Download::connect(&network, &scene.beside)?;

    let (start, at) = (Instant::now() + LEAD, SystemTime::now() + LEAD);
    let clients = RunClients { network: &network, run, at, stop };
    let (crowd, second, beside) =
        (clients.crowd(servers.paths.clone())?, clients.second()?, clients.beside()?);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let testbed = &network.testbed;
        let crowd = send(scope, testbed, CROWD, crowd);
        let second = second.map(|plan| send(scope, testbed, SECOND, plan));
        let beside = beside.map(|plan| send(scope, testbed, GUESTS, plan));
        let received = download.as_ref().map(|download| download.run(scope));
        let rates = scope.spawn(|| read_rates(&tap, scene.reading_s, start, &over));
        let protection = scope.spawn(|| active.act(&network, start, scene.onset_s(), &over));
        let downloaded = || received.as_ref().map_or(0, |count| count.load(Ordering::Relaxed));
        let seconds = count_seconds(&counters, start, scene.length_s(), downloaded, stop);
        let crowd = finish(crowd);
        let (second, beside) = (second.map(finish).transpose(), beside.map(finish).transpose());
        over.store(true, Ordering::Relaxed);
        download.iter().for_each(Download::end);
        let (fastest, protection) = (joined(rates), joined(protection));
        if stop.is_set() {
            bail!("interrupted");
        }
        let mut record = record(seconds?, fastest, protection?);
        add_crowd(&mut record, &crowd?);
        second?.iter().for_each(|load| add_second(&mut record, load));
        beside?.iter().for_each(|load| add_beside(&mut record, load));
        doubt(&mut record, testbed)?;
        Ok(record)
    })
}

fn send<'scope>(
    scope: &'scope Scope<'scope, '_>,
    testbed: &'scope Testbed,
    namespace: &'static str,
    plan: LoadPlan,
) -> ScopedJoinHandle<'scope, anyhow::Result<LoadResult>> {
    scope.spawn(move || Ok(testbed.inside(namespace, || flashweir_load::run(plan, |_| {}))??))
}

fn finish(load: ScopedJoinHandle<'_, anyhow::Result<LoadResult>>) -> anyhow::Result<LoadResult> {
    joined(load).context("the load generator")
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Counts second by second from `start` on.
fn count_seconds(
    counters: &Counters<'_>,
    start: Instant,
    length_s: u64,
    downloaded: impl Fn() -> u64,
    stop: &StopFlag,
) -> anyhow::Result<Vec<Second>> {
    wait_until(start);
    let mut seconds = Vec::new();
    let (mut before, mut bytes_before) = (counters.look()?, downloaded());
    for second in 1..=length_s {
        wait_until(start + ONE_SECOND * u32::try_from(second).unwrap_or(u32::MAX));
        if stop.is_set() {
            break;
        }
        let (now, bytes) = (counters.look()?, downloaded());
        seconds.push(Second { download_bytes: bytes - bytes_before, ..now.since(&before) });
        (before, bytes_before) = (now, bytes);
    }
    Ok(seconds)
}

fn wait_until(moment: Instant) {
    while let Some(left) = moment.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        park_timeout(left);
    }
}

fn record(seconds: Vec<Second>, fastest: Vec<Fastest>, protection: ProtectionRecord) -> Record {
    let ProtectionRecord { decisions, router, doubts } = protection;
    Record { seconds, fastest, decisions, router, doubts, ..Record::default() }
}

/// Notes what of the machine was too slow for the run to count.
fn doubt(record: &mut Record, testbed: &Testbed) -> anyhow::Result<()> {
    let lost = testbed.lost_on_long_links()?;
    if lost > 0 {
        record
            .doubts
            .push(format!("the distance lost {lost} packets, as the machine was too busy to carry them"));
    }
    if testbed.queue(ROUTER, FAR)?.sent == 0 {
        return Err(anyhow!("no packet passed the bottleneck"));
    }
    Ok(())
}

/// A download beside the crowd: one connection, whose server sends without end.
struct Download {
    listener: TcpListener,
    client: TcpStream,
    received: AtomicU64,
}

impl Download {
    fn connect(network: &Network, beside: &Beside) -> anyhow::Result<Option<Self>> {
        let (Beside::Download, Some(server)) = (beside, network.neighbour) else { return Ok(None) };
        let listener = network.testbed.inside(NEIGHBOUR, || TcpListener::bind(server))??;
        let connect = |server: SocketAddr| TcpStream::connect_timeout(&server, 10 * ONE_SECOND);
        let client = network.testbed.inside(GUESTS, || connect(server))?;
        let client = client.context("the download cannot begin")?;
        Ok(Some(Self { listener, client, received: AtomicU64::new(0) }))
    }

    /// Lets it run; the bytes that came so far.
    fn run<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> &'scope AtomicU64 {
        scope.spawn(|| send_without_end(&self.listener));
        scope.spawn(|| {
            let mut room = vec![0; 64 << 10];
            // Ends with the connection.
            while let Ok(length @ 1..) = (&self.client).read(&mut room) {
                self.received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        &self.received
    }

    fn end(&self) {
        // It may have broken before.
        let _ = self.client.shutdown(Shutdown::Both);
    }
}
