//! The candidates and their upstream: started here, on loopback, and ended by id.

use crate::Job;
use crate::common_servers::{Directory, NGINX_HEAD, path_of, reserve_port, wait_for};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server listens within this time.
const START_WITHIN: Duration = Duration::from_secs(10);

/// A server under test.
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    pub(crate) pid: u32,
    _process: Ended,
    _helpers: Vec<Ended>,
    _held: Option<Held>,
}

/// An upstream that never answers, and the clients whose requests are in flight for as long as the candidate
/// runs.
pub(crate) type Held = (TcpListener, Vec<TcpStream>);

/// A process that is ended with its owner.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn upstream(directory: &Directory, job: Job) -> (u16, Ended) {
    let port = reserve_port();
    let answers = match job {
        Job::ProxyKib(kib) => {
            let name = format!("body-{kib}");
            directory.write(&name, &"x".repeat(kib << 10));
            format!("root {}; rewrite ^ /{name} break;", directory.path().display())
        }
        Job::Proxy | Job::Refuse => format!("return 200 '{}';", "x".repeat(1024)),
    };
    let text = format!("{NGINX_HEAD} server {{ listen 127.0.0.1:{port}; location / {{ {answers} }} }} }}");
    let process = start_nginx(directory, &format!("upstream-{port}.conf"), &text, 1);
    wait_for(port, START_WITHIN);
    (port, process)
}

pub(crate) fn flashweir(directory: &Directory, job: Job) -> Candidate {
    let (port, admin) = (reserve_port(), reserve_port());
    let binary = env!("CARGO_BIN_EXE_flashweir");
    let (upstream_port, helpers, held, bounds) = match job {
        Job::Proxy | Job::ProxyKib(_) => {
            let (upstream_port, process) = upstream(directory, job);
            (upstream_port, vec![process], None, "")
        }
        Job::Refuse => {
            // The one request allowed in flight is held by an upstream that never answers: all others are
            // refused.
            let silent = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
            let upstream_port = silent.local_addr().expect("a bound listener").port();
            (upstream_port, Vec::new(), Some(silent), "[bounds]\nmax_requests_in_flight = 1\n")
        }
    };
    let config = directory.write(
        &format!("flashweir-{port}.toml"),
        &format!(
            "[gateway]\nworkers = 1\n[listen]\naddress = \"127.0.0.1:{port}\"\n[admin]\naddress = \"127.0.0.1:{admin}\"\n\
             [upstream]\nurls = [\"http://127.0.0.1:{upstream_port}\"]\nresponse_header_timeout = \"10m\"\n{bounds}"
        ),
    );
    let process = start(Command::new("taskset").args(["-c", "0", binary, "run", "--config"]).arg(config));
    wait_for(port, START_WITHIN);
    let held = held.map(|silent| {
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("flashweir listens");
        client.write_all(b"GET / HTTP/1.1\r\nHost: held\r\n\r\n").expect("a request");
        // At its start the gateway opens a connection and asks for nothing.
        let upstream_side = loop {
            let (mut upstream_side, _) = silent.accept().expect("the held request arrives");
            if upstream_side.read_exact(&mut [0]).is_ok() {
                break upstream_side;
            }
        };
        // Kept open for as long as the process lives: dropping it would answer 502 and free the place.
        std::mem::forget(upstream_side);
        (silent, vec![client])
    });
    candidate("flashweir", port, process, helpers, held)
}

/// nginx with further settings of its location; with none, as it comes.
pub(crate) fn nginx(directory: &Directory, job: Job, settings: &str) -> Candidate {
    let port = reserve_port();
    let (helpers, server) = match job {
        Job::Proxy | Job::ProxyKib(_) => {
            let (upstream_port, process) = upstream(directory, job);
            let server = format!(
                "upstream u {{ server 127.0.0.1:{upstream_port}; keepalive 128; keepalive_requests 1000000000; }}
                 server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; proxy_http_version 1.1;
                 proxy_set_header Connection ''; {settings} }} }}"
            );
            (vec![process], server)
        }
        Job::Refuse => (
            Vec::new(),
            format!("server {{ listen 127.0.0.1:{port}; location / {{ return 503 'busy\n'; }} }}"),
        ),
    };
    let process =
        start_nginx(directory, &format!("nginx-{port}.conf"), &format!("{NGINX_HEAD} {server} }}"), 0);
    wait_for(port, START_WITHIN);
    let name = if settings.is_empty() { "nginx" } else { "nginx, unbuffered" };
    candidate(name, port, process, helpers, None)
}

pub(crate) fn haproxy(directory: &Directory, job: Job) -> Candidate {
    let port = reserve_port();
    let (helpers, action) = match job {
        Job::Proxy | Job::ProxyKib(_) => {
            let (upstream_port, process) = upstream(directory, job);
            (vec![process], format!("http-reuse always\n  server u 127.0.0.1:{upstream_port}"))
        }
        Job::Refuse => {
            (Vec::new(), "http-request return status 503 content-type text/plain string busy".to_owned())
        }
    };
    let config = directory.write(
        &format!("haproxy-{port}.cfg"),
        &format!(
            "global\n  nbthread 1\n  maxconn 4096\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  \
             timeout server 60s\nlisten l\n  bind 127.0.0.1:{port}\n  {action}\n"
        ),
    );
    let process =
        start(Command::new("taskset").args(["-c", "0", &path_of("haproxy"), "-db", "-f"]).arg(config));
    wait_for(port, START_WITHIN);
    candidate("haproxy", port, process, helpers, None)
}

pub(crate) fn candidate(
    name: &'static str,
    port: u16,
    process: Ended,
    helpers: Vec<Ended>,
    held: Option<Held>,
) -> Candidate {
    let pid = process.0.id();
    Candidate {
        name,
        url: format!("http://127.0.0.1:{port}/"),
        pid,
        _process: process,
        _helpers: helpers,
        _held: held,
    }
}

fn start_nginx(directory: &Directory, name: &str, text: &str, core: usize) -> Ended {
    let config = directory.write(name, &format!("pid {name}.pid; {text}"));
    start(
        Command::new("taskset")
            .args(["-c", &core.to_string(), &path_of("nginx"), "-e", "stderr", "-p"])
            .arg(directory.path())
            .arg("-c")
            .arg(config),
    )
}

/// taskset replaces itself with the program, so the child's id is the server's.
pub(crate) fn start(command: &mut Command) -> Ended {
    Ended(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("taskset was found at the start"))
}
