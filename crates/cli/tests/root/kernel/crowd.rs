//! A crowd of clients that open a connection for each request, and come again soon after any answer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flashweir_testkit::PATIENCE;

use crate::kernel::scene::Scene;

/// Outcomes at the clients, each request in one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Met {
    /// 200.
    pub(crate) served: u64,
    /// 503 from the gateway.
    pub(crate) refused_by_gateway: u64,
    /// 503 from the kernel, with all it should have.
    pub(crate) refused_by_kernel: u64,
    /// Of those, for the origin's capacity; the others for a flash crowd.
    pub(crate) for_capacity: u64,
}

impl Met {
    /// Connections opened.
    pub(crate) fn all(self) -> u64 {
        self.served + self.refused_by_gateway + self.refused_by_kernel
    }
}

/// A few times as many as are served at once.
const CLIENTS: usize = 48;

/// Before one who was refused comes again: some 2,000 a second come, which leaves the processor to those who
/// serve.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends the crowd until `look` returns true, then ends it and says what it met.
///
/// # Panics
/// When a connection fails or an answer is none of the three.
pub(crate) fn send_crowd(scene: &Scene, look: impl FnOnce() + Send) -> Met {
    let (over, met) = (AtomicBool::new(false), Mutex::new(Met::default()));
    let address = scene.address;
    scene.as_client(|| {
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = Met::default();
                        while !over.load(Ordering::Relaxed) {
                            let served = mine.served;
                            count(&mut mine, &ask(address));
                            if mine.served == served {
                                pause();
                            }
                        }
                        add(&mut met.lock().expect("no thread panicked"), mine);
                    })
                })
                .collect();
            let looked = thread::Builder::new().spawn_scoped(scope, look).expect("a thread").join();
            over.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().expect("only answers that are known"));
            looked.expect("what is waited for happens");
        });
    });
    met.into_inner().expect("no thread panicked")
}

/// The crowd's pace; nothing is waited for with it.
pub(crate) fn pause() {
    thread::park_timeout(PAUSE);
}

/// One request on its own connection: the whole response.
pub(crate) fn ask(address: SocketAddr) -> String {
    let mut stream =
        TcpStream::connect_timeout(&address, PATIENCE).expect("a connection, to the gate or to the gateway");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.write_all(b"GET /work HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("room");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response to its end");
    response
}

/// Returns whether a response is the kernel's own.
pub(crate) fn is_refused_by_kernel(response: &str) -> bool {
    response.contains("\r\nFlashweir-Decision: ") && response.contains(" kernel; reason=")
}

fn count(met: &mut Met, response: &str) {
    if response.starts_with("HTTP/1.1 200 ") {
        met.served += 1;
    } else if is_refused_by_kernel(response) {
        let has_reason = |reason: &str| response.contains(&format!("; reason={reason}\r\n"));
        assert!(has_reason("capacity") || has_reason("flash_crowd"), "{response}");
        met.for_capacity += u64::from(has_reason("capacity"));
        assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
        let field = response.lines().find_map(|line| line.strip_prefix("Retry-After: "));
        let seconds: u32 = field.and_then(|value| value.trim().parse().ok()).expect("whole seconds");
        assert!((1..=60).contains(&seconds), "{response}");
        met.refused_by_kernel += 1;
    } else {
        assert!(response.starts_with("HTTP/1.1 503 ") && response.contains("; reason="), "{response}");
        met.refused_by_gateway += 1;
    }
}

fn add(all: &mut Met, one: Met) {
    all.served += one.served;
    all.refused_by_gateway += one.refused_by_gateway;
    all.refused_by_kernel += one.refused_by_kernel;
    all.for_capacity += one.for_capacity;
}
