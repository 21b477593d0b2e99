//! A scripted node that asks for less, and the sidecar before it.

use flashweir_core::Rate;
use flashweir_feedback::{Feedback, Field, KeyRing};
use flashweir_testkit::{
    Client, Connection, Finished, Flashweir, Listening, Message, Metrics, Process, READY_FILE, Signal,
    Upstream, eventually, reserve_address,
};
use flashweir_tower::client::{HmacKey, Keys};
use serde_json::Value;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// The key of both ends.
pub(crate) const KEY: &str = "1 correct horse battery staple";
/// Context with which both ends sign.
pub(crate) const CONTEXT: &str = "shop>api";
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// A server with a scripted answer to every request.
pub(crate) struct ScriptedNode {
    pub(crate) upstream: Upstream,
    answer: Arc<Mutex<Answer>>,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    fields: String,
}

impl ScriptedNode {
    pub(crate) fn start() -> Self {
        Self::start_at((std::net::Ipv4Addr::LOCALHOST, 0).into())
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let answer = Arc::new(Mutex::new(Answer { status: 200, fields: String::new() }));
        let script = Arc::clone(&answer);
        let upstream = Upstream::start_at(address, move |connection: &mut Connection| {
            while connection.read_request().is_some() {
                let answer = script.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if !connection.answer(answer.status, &answer.fields, "from the node") {
                    return;
                }
            }
        });
        Self { upstream, answer }
    }

    /// The status and the field lines of the answers from now on.
    pub(crate) fn answer(&self, status: u16, fields: &str) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) =
            Answer { status, fields: fields.to_owned() };
    }

    /// Asks for this from now on, signed.
    pub(crate) fn ask(&self, feedback: &Feedback) {
        self.answer(200, &line(&signed(feedback)));
    }

    pub(crate) fn count(&self) -> usize {
        self.upstream.request_count()
    }
}

/// A message that limits from rank 1 on, for as long as a message may hold.
pub(crate) fn asks(sequence: u32, rate_rps: f64) -> Feedback {
    let rate = Some(Rate::from_per_second(rate_rps));
    Feedback { epoch: 1_700_000_000, sequence, from_rank: 1, severity: 1, rate, ttl: Duration::from_secs(10) }
}

pub(crate) fn ring() -> KeyRing<HmacKey> {
    Keys::parse(KEY, "test").expect("a key").ring()
}

pub(crate) fn signed(feedback: &Feedback) -> String {
    written(feedback, &ring(), CONTEXT)
}

pub(crate) fn written(feedback: &Feedback, ring: &KeyRing<HmacKey>, context: &str) -> String {
    let field = Field::new(feedback, ring, context.as_bytes()).expect("a message that makes sense");
    String::from_utf8(field.as_bytes().to_vec()).expect("base64")
}

pub(crate) fn line(value: &str) -> String {
    format!("Flashweir-Overload: {value}\r\n")
}

/// A sidecar, running.
pub(crate) struct Egress {
    process: Process,
    directory: TempDir,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
}

impl Egress {
    /// One listener before the target `api`, with the test's key. `more` are further lines of the target.
    pub(crate) fn start(urls: &[String], more: &str) -> Self {
        Self::start_with(urls, &format!("key_file = \"api.keys\"\n{more}"), "")
    }

    /// The same without a key, unless `target` names its file. `general` goes before the tables.
    pub(crate) fn start_with(urls: &[String], target: &str, general: &str) -> Self {
        let (address, admin) = (reserve_address(), reserve_address());
        let mut config = format!("name = \"shop\"\nadmin = \"{admin}\"\n{general}\n");
        let ranks = "[ranks]\nfield = \"x-class\"\nvalues = { checkout = 0, search = 3 }\npriority = true\n";
        // Writing to a string cannot fail.
        let _ = write!(
            config,
            "[[listen]]\naddress = \"{address}\"\ntarget = \"api\"\n{ranks}[[target]]\nname = \"api\"\nurls = {urls:?}\n{target}\n"
        );
        Self::start_config(&config, address, admin)
    }

    /// With a whole configuration.
    pub(crate) fn start_config(config: &str, address: SocketAddr, admin: SocketAddr) -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        std::fs::write(directory.path().join("api.keys"), format!("{KEY}\n")).expect("a writable directory");
        std::fs::write(directory.path().join("egress.toml"), config).expect("a writable directory");
        let mut process = binary()
            .start(directory.path(), ["egress", "--config", "egress.toml", "--ready-file", READY_FILE]);
        eventually("the sidecar's readiness", || {
            if let Some(status) = process.ended() {
                panic!("it ended at its start ({status}): {}", process.stderr());
            }
            Listening::read(directory.path()).map(|_| ())
        });
        Self { process, directory, address, admin }
    }

    /// Every address it listens on, also those with a port that the system chose.
    pub(crate) fn listening(&self) -> Listening {
        Listening::read(self.directory.path()).expect("it has said where it listens")
    }

    pub(crate) fn get(&self) -> Message {
        self.get_with("")
    }

    /// A GET with further field lines, each with its end.
    pub(crate) fn get_with(&self, fields: &str) -> Message {
        Client::connect(self.address).ask(&get(fields))
    }

    pub(crate) fn status(&self) -> Value {
        Client::get(self.admin, "/status").json()
    }

    /// The first node of the target.
    pub(crate) fn node(&self) -> Value {
        self.status()["targets"][0]["nodes"][0].clone()
    }

    /// Waits until the first node's condition is this.
    pub(crate) fn until_condition(&self, condition: &str) {
        eventually(&format!("condition {condition}"), || {
            (self.node()["condition"] == condition).then_some(())
        });
    }

    pub(crate) fn feedback(&self, outcome: &str) -> u64 {
        self.node()["feedback"][outcome].as_u64().expect("a count")
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::of(self.admin)
    }

    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    pub(crate) fn write_keys(&self, text: &str) {
        std::fs::write(self.directory.path().join("api.keys"), text).expect("a writable directory");
        self.process.signal(Signal::Reload);
    }

    pub(crate) fn stop(self) -> Finished {
        self.process.signal(Signal::Terminate);
        self.process.finish(STOPS_WITHIN)
    }
}

pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

pub(crate) fn get(fields: &str) -> String {
    format!("GET /stock HTTP/1.1\r\nHost: test\r\n{fields}\r\n")
}

/// Statuses of `count` requests, one after the other on one connection.
pub(crate) fn statuses(egress: &Egress, count: usize, fields: &str) -> Vec<u16> {
    let mut client = Client::connect(egress.address);
    (0..count).map(|_| client.ask(&get(fields)).status()).collect()
}
