//! One measurement: two runs that differ by a number of requests, side by side.

use crate::client;
use crate::common_servers::Directory;
use crate::origin;
use crate::servers::{Server, Start};
use flashweir_load::trials::instructions::{PerRequest, Profile, Scenario};
use flashweir_testkit::{Authority, CertificateFiles, Signal};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// A server under valgrind ends within this time.
const END_WITHIN: Duration = Duration::from_secs(60);

/// Length and extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    /// Requests of the shorter run: after these every pool and table has what it needs.
    pub(crate) few: u32,
    /// Requests that the longer run has more.
    pub(crate) requests: u32,
    /// Time from one request to the next.
    pub(crate) interval: Duration,
    /// Functions of Flashweir's worker that do not count; none of them calls another.
    pub(crate) uncounted: &'static [&'static str],
}

/// Files that all measurements share.
pub(crate) struct Place {
    directory: Directory,
    authority: PathBuf,
    certificate: CertificateFiles,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = Directory::new();
        let signer = Authority::new();
        let authority = signer.write(directory.path());
        let certificate = signer.issue(directory.path(), "localhost");
        Self { directory, authority, certificate }
    }

    /// Profile of one request.
    pub(crate) fn measure(&self, server: &Server, scenario: Scenario, length: Length) -> PerRequest {
        let (few, many) = std::thread::scope(|scope| {
            let few = scope.spawn(|| self.run(server, scenario, length.few, length));
            let many = self.run(server, scenario, length.few + length.requests, length);
            (few.join().expect("the shorter run"), many)
        });
        PerRequest::new(&many, &few, length.requests)
    }

    fn run(&self, server: &Server, scenario: Scenario, requests: u32, length: Length) -> Profile {
        let is_filled = scenario.is_refused() && matches!(server, Server::Flashweir(_));
        // An origin that never answers keeps the one place taken.
        let silent = is_filled.then(|| TcpListener::bind("127.0.0.1:0").expect("a loopback port"));
        let origin = match &silent {
            Some(listener) => listener.local_addr().expect("a bound listener"),
            None => origin::start(scenario.answer_bytes()),
        };
        let (directory, certificate) = (&self.directory, &self.certificate);
        let start = Start { directory, scenario, origin, certificate, uncounted: length.uncounted };
        let counts = directory.path().join(format!("{}-{requests}-{}", scenario.key(), origin.port()));
        let (process, port) = server.start(&start, &counts);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let held = silent.map(|listener| hold(listener, address));
        client::send(scenario, address, &self.authority, requests, length.interval);
        drop(held);
        process.signal(Signal::Terminate);
        let finished = process.finish(END_WITHIN);
        let text = std::fs::read_to_string(&counts)
            .unwrap_or_else(|error| panic!("callgrind wrote nothing ({error}): {}", finished.stderr));
        let _ = std::fs::remove_file(&counts);
        Profile::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", scenario.name()))
    }
}

/// The first connection on which a byte comes: at its start the gateway opens one and asks for nothing.
fn first_asked(origin: &TcpListener) -> TcpStream {
    loop {
        let (mut upstream, _) = origin.accept().expect("the request arrives");
        if upstream.read_exact(&mut [0]).is_ok() {
            return upstream;
        }
    }
}

/// A request in flight for as long as its connections are kept.
fn hold(origin: TcpListener, gateway: SocketAddr) -> (TcpListener, TcpStream, TcpStream) {
    let mut client = TcpStream::connect(gateway).expect("flashweir listens");
    client.write_all(b"GET / HTTP/1.1\r\nHost: held\r\n\r\n").expect("a request");
    let upstream = first_asked(&origin);
    (origin, client, upstream)
}
