//! The stage: one gateway, its servers, its clients, and the end of it all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flashweir_core::Rng;
use flashweir_testkit::{
    Authority, Clocks, FakeClock, Flashweir, Gateway, GatewayBuilder, SmallDisk, Upstream, reserve_address,
    until,
};
use tempfile::TempDir;

use crate::soak::account::Account;
use crate::soak::clients::{self, HTTP2_HOST, Place};
use crate::soak::servers::{self, Http2Server};
use crate::soak::troubles;

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
/// Threads of clients that behave, and of those that do not.
const BEHAVING: usize = 6;
const MISBEHAVING: usize = 2;
/// Between two troubles, milliseconds, at most.
const QUIET_MS: u64 = 600;
/// Open files that the gateway may keep when all is over: connections to its servers, which it may use again.
const FILES_KEPT: usize = 64;
/// Memory that it may keep: the allocator's, and what its tables have grown to.
const BYTES_KEPT: u64 = 64 << 20;
/// Time within which memory and files have to come back.
const BACK_WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    pub(crate) account: Arc<Account>,
    pub(crate) binary: Flashweir,
    pub(crate) gateway: Option<Gateway>,
    pub(crate) servers: Vec<Upstream>,
    pub(crate) http2_server: Http2Server,
    pub(crate) disk: Option<SmallDisk>,
    pub(crate) clock: Option<FakeClock>,
    encrypted: Gateway,
    _directory: TempDir,
}

/// Runs it all from a seed, and checks.
pub(crate) fn soak(seed: u64, time: Duration) {
    let mut rng = Rng::new(seed);
    let mut scene = Scene::new();
    let place = Place {
        gateway: scene.gateway().address(),
        encrypted: scene.encrypted.address(),
        account: Arc::clone(&scene.account),
        ends: Arc::new(AtomicBool::new(false)),
    };
    let (files, bytes) = scene.footprint();
    let chosen = troubles::chosen(&mut rng);
    println!("soak, seed {seed}, {time:?}: {chosen:?}");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..BEHAVING {
            let (place, rng) = (&place, rng.fork(client as u64));
            scope.spawn(move || clients::behave(place, client, rng));
        }
        for client in 0..MISBEHAVING {
            let (place, rng) = (&place, rng.fork((BEHAVING + client) as u64));
            scope.spawn(move || clients::misbehave(place, client, rng));
        }
        let ends = EndsWhenDropped(&place.ends);
        let mut printed_at = begun;
        while begun.elapsed() < time {
            std::thread::park_timeout(Duration::from_millis(1 + rng.below(QUIET_MS)));
            let trouble = troubles::draw(&chosen, &mut rng);
            scene.suffer(trouble, &mut rng);
            place.account.count("troubles");
            if printed_at.elapsed() > Duration::from_secs(60) {
                printed_at = Instant::now();
                let (files, bytes) = scene.footprint();
                println!(
                    "{:?}: {files} files, {} kB; {}",
                    begun.elapsed(),
                    bytes >> 10,
                    place.account.report()
                );
            }
        }
        drop(ends);
    });
    scene.calm_down(files, bytes);
    println!("soak, seed {seed}, over: {}", scene.account.report());
    scene.account.check();
    assert!(scene.account.total("served") > 50, "{}", scene.account.report());
}

/// Clients end also when something panics.
struct EndsWhenDropped<'a>(&'a AtomicBool);

impl Drop for EndsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Scene {
    fn new() -> Self {
        const TEST: &str = "soak";
        let account = Arc::new(Account::default());
        let servers: Vec<_> = (0..2).map(|_| servers::start_at(reserve_address(), &account)).collect();
        let http2_server = Http2Server::start(&account);
        let directory = tempfile::tempdir().expect("a directory");
        let disk = SmallDisk::require(directory.path(), TEST);
        let clock = FakeClock::require(TEST, BINARY, Clocks::TimeOfDay);
        let binary = clock.as_ref().map_or_else(|| Flashweir::new(BINARY), FakeClock::binary);
        let urls: Vec<_> = servers.iter().map(Upstream::url).collect();
        let service = format!(
            "[{{ name = \"h2\", hosts = [\"{HTTP2_HOST}\"], upstream = {{ urls = [\"{}\"], protocol = \"http2\" }} }}]",
            http2_server.url()
        );
        let mut builder = GatewayBuilder::new(&binary)
            .upstreams(urls.iter().map(String::as_str))
            .set("service", &service)
            .text("upstream.health.eject_for", "200ms")
            // A crash leaves many requests unanswered at once; drains are short, or there would be few.
            .text("bounds.drain_timeout", "2s");
        if let Some(disk) = &disk {
            builder = builder.text("state.file", &disk.path().join("baseline.json").display().to_string());
        }
        let gateway = builder.start();
        let builder = GatewayBuilder::new(&Flashweir::new(BINARY)).upstream(&urls[0]);
        let _files = Authority::new().issue(builder.directory(), "soak");
        let encrypted = builder
            .text("listen.tls.certificate", "server.pem")
            .text("listen.tls.key", "server.key")
            .text("bounds.tls_handshake_timeout", "1s")
            .start();
        let gateway = Some(gateway);
        Self {
            account,
            binary,
            gateway,
            servers,
            http2_server,
            disk,
            clock,
            encrypted,
            _directory: directory,
        }
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("a gateway between two troubles")
    }

    pub(crate) fn gateway_mut(&mut self) -> &mut Gateway {
        self.gateway.as_mut().expect("a gateway between two troubles")
    }

    /// Open files and memory of the gateway.
    fn footprint(&self) -> (usize, u64) {
        let process = self.gateway().process();
        (process.open_files(), process.resident_bytes())
    }

    /// All clients are gone: nothing of them may be left, and all that is asked now is served.
    fn calm_down(&self, files: usize, bytes: u64) {
        let gateway = self.gateway();
        assert!(!gateway.stderr().contains("panicked"), "{}", gateway.stderr());
        until("the end of all requests", BACK_WITHIN, || (gateway.in_flight() == 0).then_some(()));
        for running in [gateway, &self.encrypted] {
            until("the end of all connections", BACK_WITHIN, || {
                (running.metrics().value("flashweir_connections_open") == 0.0).then_some(())
            });
        }
        until("service for all", BACK_WITHIN, || {
            let served = |number| gateway.get(&format!("/r/999/{number}/small")).status() == 200;
            let begin = self.account.total("calm rounds") * 20;
            self.account.count("calm rounds");
            (begin..begin + 20).all(served).then_some(())
        });
        let (mut files_now, mut bytes_now) = self.footprint();
        until("files and memory back", BACK_WITHIN, || {
            (files_now, bytes_now) = self.footprint();
            (files_now <= files + FILES_KEPT && bytes_now <= bytes + BYTES_KEPT).then_some(())
        });
        println!(
            "files {files} before and {files_now} after, memory {} kB before and {} kB after",
            bytes >> 10,
            bytes_now >> 10
        );
    }
}
