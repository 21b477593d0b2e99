//! `flashweir run`, running, with what a test wants to know of it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::binary::Flashweir;
use crate::client::Client;
use crate::deadline::{PATIENCE, eventually};
use crate::listening::{Listening, READY_FILE};
use crate::message::Message;
use crate::open_metrics::Metrics;
use crate::ports::reserve_address;
use crate::process::{Finished, Process, Signal};

/// A drain may take as long as `bounds.drain_timeout`, and then some.
const STOP_WITHIN: Duration = Duration::from_secs(40);

/// Describes a gateway: every setting is a key of the configuration file, written as in TOML.
#[derive(Debug)]
pub struct GatewayBuilder {
    binary: Flashweir,
    directory: TempDir,
    settings: Vec<(String, String)>,
    arguments: Vec<OsString>,
    open_files: Option<(u32, u32)>,
    address: SocketAddr,
    admin: SocketAddr,
}

/// A running gateway, killed when dropped.
#[derive(Debug)]
pub struct Gateway {
    process: Process,
    directory: TempDir,
    settings: Vec<(String, String)>,
    address: SocketAddr,
    admin: SocketAddr,
}

impl GatewayBuilder {
    /// A gateway with its own ports and state file, and all else as it is out of the box.
    ///
    /// # Panics
    /// When no fresh directory can be made.
    #[must_use]
    pub fn new(binary: &Flashweir) -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        let (address, admin) = (reserve_address(), reserve_address());
        let settings = vec![
            ("listen.address".to_owned(), format!("\"{address}\"")),
            ("admin.address".to_owned(), format!("\"{admin}\"")),
            ("state.file".to_owned(), "\"baseline.json\"".to_owned()),
        ];
        let (arguments, open_files) = (Vec::new(), None);
        Self { binary: binary.clone(), directory, settings, arguments, open_files, address, admin }
    }

    /// The servers behind it.
    #[must_use]
    pub fn upstreams<'a>(self, urls: impl IntoIterator<Item = &'a str>) -> Self {
        let urls: Vec<String> = urls.into_iter().map(|url| format!("\"{url}\"")).collect();
        self.set("upstream.urls", &format!("[{}]", urls.join(", ")))
    }

    /// One server behind it.
    #[must_use]
    pub fn upstream(self, url: &str) -> Self {
        self.upstreams([url])
    }

    /// A key with its section, and a value as TOML writes it: `set("bounds.max_fields", "20")`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        put(&mut self.settings, key, value);
        self
    }

    /// A key with its section, and a text: `text("flash_crowd.mode", "off")`.
    #[must_use]
    pub fn text(self, key: &str, value: &str) -> Self {
        self.set(key, &format!("\"{value}\""))
    }

    /// A further argument of `flashweir run`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The soft and the hard limit on open files it is started with.
    #[must_use]
    pub fn open_files(mut self, soft: u32, hard: u32) -> Self {
        self.open_files = Some((soft, hard));
        self
    }

    /// Directory of its files; relative names in the configuration are relative to it.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Address to which clients will connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of its future admin listener.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Starts it and waits until it says that it is ready.
    ///
    /// # Panics
    /// When it does not get ready.
    #[must_use]
    pub fn start(self) -> Gateway {
        let (mut process, builder) = self.spawn();
        let (admin, address) = (builder.admin, builder.address);
        eventually("the gateway's readiness", || {
            if let Some(status) = process.ended() {
                panic!("the gateway ended at its start ({status}): {}", process.stderr());
            }
            let mut client = Client::try_connect(admin).ok()?;
            client.try_send("GET /readyz HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").ok()?;
            // Its client ports are taken before it says so; connecting would show in what tests count.
            client.try_response().is_ok_and(|response| response.status() == 200).then_some(())
        });
        Gateway { process, directory: builder.directory, settings: builder.settings, address, admin }
    }

    /// Starts it and waits for it to end, as it should when something is wrong.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn start_in_vain(self) -> Finished {
        let (process, _builder) = self.spawn();
        process.finish(PATIENCE)
    }

    fn spawn(self) -> (Process, Self) {
        write_config(self.directory.path(), &self.settings);
        let arguments = ["run", "--config", CONFIG_FILE, "--ready-file", READY_FILE].map(OsString::from);
        let arguments = arguments.into_iter().chain(self.arguments.iter().cloned());
        let directory = self.directory.path();
        let process = match self.open_files {
            None => self.binary.start(directory, arguments),
            Some((soft, hard)) => self.binary.start_limited(directory, soft, hard, arguments),
        };
        (process, self)
    }
}

impl Gateway {
    /// Address to which clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of its admin listener.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Every address it listens on, also those with a port that the system chose.
    ///
    /// # Panics
    /// When it has not written them, though it is ready.
    #[must_use]
    pub fn listening(&self) -> Listening {
        Listening::read(self.directory.path()).expect("a gateway that is ready has said where it listens")
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Directory of its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A connection to it.
    #[must_use]
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// One GET through it, on its own connection.
    #[must_use]
    pub fn get(&self, target: &str) -> Message {
        Client::get(self.address, target)
    }

    /// One GET of its admin listener.
    #[must_use]
    pub fn ask_admin(&self, target: &str) -> Message {
        Client::get(self.admin, target)
    }

    /// Its metrics, checked.
    ///
    /// # Panics
    /// When they are not OpenMetrics.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.admin)
    }

    /// Its status document.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn status(&self) -> serde_json::Value {
        self.ask_admin("/status").json()
    }

    /// Requests admitted and not finished.
    ///
    /// # Panics
    /// When the status does not say.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.status()["requests"]["in_flight"].as_u64().expect("a number of requests in flight")
    }

    /// Waits until exactly this number of requests is in flight.
    ///
    /// # Panics
    /// When it does not come to that.
    pub fn wait_in_flight(&self, wanted: u64) {
        eventually(&format!("{wanted} requests in flight"), || (self.in_flight() == wanted).then_some(()));
    }

    /// Waits until a counter (labels as they are written) has reached a value.
    ///
    /// # Panics
    /// When it does not come to that.
    pub fn wait_metric(&self, series: &str, at_least: f64) {
        eventually(&format!("{series} at {at_least}"), || {
            (self.metrics().value(series) >= at_least).then_some(())
        });
    }

    /// Its output on standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Changes keys in its configuration file; `None` removes one.
    pub fn configure(&mut self, changes: &[(&str, Option<&str>)]) {
        for (key, value) in changes {
            match value {
                Some(value) => put(&mut self.settings, key, value),
                None => self.settings.retain(|(known, _)| known != key),
            }
        }
        write_config(self.directory.path(), &self.settings);
    }

    /// Makes it read its configuration again.
    pub fn reload(&self) {
        self.process.signal(Signal::Reload);
    }

    /// Makes it finish and stop.
    pub fn terminate(&self) {
        self.process.signal(Signal::Terminate);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn finish(self) -> Finished {
        self.process.finish(STOP_WITHIN)
    }

    /// Ends it in order, and gives back a builder with the same ports, files and settings.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn stop(self, binary: &Flashweir) -> (Finished, GatewayBuilder) {
        self.end(Signal::Terminate, binary)
    }

    /// Ends it as a crash would, and gives back a builder with the same ports, files and settings.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn crash(self, binary: &Flashweir) -> (Finished, GatewayBuilder) {
        self.end(Signal::Kill, binary)
    }

    /// Waits for the end of one that something else has ended, and gives back a builder as [`Gateway::crash`]
    /// does.
    ///
    /// # Panics
    /// When it does not end.
    #[must_use]
    pub fn gone(self, binary: &Flashweir) -> (Finished, GatewayBuilder) {
        self.ended(binary)
    }

    fn end(self, how: Signal, binary: &Flashweir) -> (Finished, GatewayBuilder) {
        self.process.signal(how);
        self.ended(binary)
    }

    fn ended(self, binary: &Flashweir) -> (Finished, GatewayBuilder) {
        let Self { process, directory, settings, address, admin } = self;
        let finished = process.finish(STOP_WITHIN);
        let binary = binary.clone();
        let builder = GatewayBuilder {
            binary,
            directory,
            settings,
            arguments: Vec::new(),
            open_files: None,
            address,
            admin,
        };
        (finished, builder)
    }
}

const CONFIG_FILE: &str = "flashweir.toml";

fn put(settings: &mut Vec<(String, String)>, key: &str, value: &str) {
    match settings.iter_mut().find(|(known, _)| known == key) {
        Some((_, old)) => value.clone_into(old),
        None => settings.push((key.to_owned(), value.to_owned())),
    }
}

/// Dotted keys at the top level: sections may then come in any order, and each setting has its own line.
fn write_config(directory: &Path, settings: &[(String, String)]) {
    let text = settings.iter().fold(String::new(), |mut text, (key, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
        text
    });
    std::fs::write(directory.join(CONFIG_FILE), text).expect("a writable directory");
}
