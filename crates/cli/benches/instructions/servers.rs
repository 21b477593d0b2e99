//! Servers under callgrind: how each is started for each scenario.

use crate::common_servers::{Directory, NGINX_HEAD, path_of, reserve_port, wait_for};
use flashweir_load::trials::instructions::Scenario;
use flashweir_testkit::{CertificateFiles, Process, until};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server under valgrind listens within this time.
const START_WITHIN: Duration = Duration::from_secs(120);

/// Function of the thread that counts: of Flashweir's worker, and of no other thread.
const WORKER: &str = "flashweir_gateway::worker::run*";

/// A program that is measured.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// Flashweir, from this binary.
    Flashweir(PathBuf),
    Nginx,
    Haproxy,
}

/// A server on its way to be started.
pub(crate) struct Start<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) scenario: Scenario,
    pub(crate) origin: SocketAddr,
    pub(crate) certificate: &'a CertificateFiles,
    pub(crate) uncounted: &'a [&'a str],
}

impl Server {
    /// Name and version, as the program says it.
    pub(crate) fn version(&self) -> String {
        let (name, program, argument) = match self {
            Self::Flashweir(binary) => ("Flashweir", binary.clone(), "--version"),
            Self::Nginx => ("nginx", path_of("nginx").into(), "-v"),
            Self::Haproxy => ("HAProxy", path_of("haproxy").into(), "-v"),
        };
        let output =
            std::process::Command::new(program).arg(argument).output().expect("an installed program");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        // "nginx version: nginx/1.22.1", "HAProxy version 2.6.12-1 2023/12/16 - ...", "flashweir 0.1.0".
        let words = text.split([' ', '/', '\n']);
        let version = words.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        format!("{name} {}", version.unwrap_or("of unknown version"))
    }

    /// Starts it under callgrind, which writes `counts` at its end, and waits until it listens on the port
    /// that is returned.
    pub(crate) fn start(&self, start: &Start<'_>, counts: &Path) -> (Process, u16) {
        let port = reserve_port();
        let mut arguments: Vec<String> = ["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
            .into_iter()
            .chain(["--collect-systime=yes"])
            .map(str::to_owned)
            .collect();
        arguments.push(format!("--callgrind-out-file={}", counts.display()));
        let command = match self {
            Self::Flashweir(binary) => {
                let config = start.directory.write(&format!("{port}.toml"), &flashweir(start, port));
                // Each entry of such a function turns counting on or off, and its return back.
                let toggles = [WORKER].iter().chain(start.uncounted);
                arguments.extend(toggles.map(|function| format!("--toggle-collect={function}")));
                vec![
                    binary.display().to_string(),
                    "run".to_owned(),
                    "--config".to_owned(),
                    config.display().to_string(),
                    "--ready-file".to_owned(),
                    ready_file(start, port).display().to_string(),
                ]
            }
            Self::Nginx => {
                let config = start.directory.write(&format!("{port}.conf"), &nginx(start, port));
                let folder = start.directory.path().display().to_string();
                let options = ["-e", "stderr", "-p", &folder, "-c"].map(str::to_owned);
                [path_of("nginx")].into_iter().chain(options).chain([config.display().to_string()]).collect()
            }
            Self::Haproxy => {
                let config = start.directory.write(&format!("{port}.cfg"), &haproxy(start, port));
                vec![path_of("haproxy"), "-db".to_owned(), "-f".to_owned(), config.display().to_string()]
            }
        };
        arguments.extend(command);
        let process = Process::start(Path::new("valgrind"), start.directory.path(), arguments);
        match self {
            // It tries its port before it listens, and would reset a connection that comes between.
            Self::Flashweir(_) => until("flashweir's ready file", START_WITHIN, || {
                ready_file(start, port).exists().then_some(())
            }),
            Self::Nginx | Self::Haproxy => wait_for(port, START_WITHIN),
        }
        (process, port)
    }
}

fn ready_file(start: &Start<'_>, port: u16) -> PathBuf {
    start.directory.path().join(format!("{port}.ready.json"))
}

/// Its defaults, but for what a scenario is about.
fn flashweir(start: &Start<'_>, port: u16) -> String {
    let admin = reserve_port();
    let Start { directory, scenario, origin, certificate, .. } = start;
    let state = directory.path().join(format!("{port}.state.json"));
    let scenario = match scenario {
        // One request in flight is the limit, and is kept in flight. Refusals of one source again and again
        // would have its connections closed at once.
        Scenario::RefuseKept | Scenario::RefuseNew => {
            "bounds.max_requests_in_flight = 1\nfairness.drop_impatient = false\n".to_owned()
        }
        Scenario::CacheHit => "cache.mode = \"always\"\n".to_owned(),
        Scenario::Tls => format!(
            "listen.tls.certificate = {:?}\nlisten.tls.key = {:?}\n",
            certificate.certificate, certificate.key
        ),
        _ => String::new(),
    };
    format!(
        "listen.address = \"127.0.0.1:{port}\"\nadmin.address = \"127.0.0.1:{admin}\"\nupstream.urls = [\"http://{origin}\"]\n\
         upstream.response_header_timeout = \"10m\"\nstate.file = {state:?}\ngateway.workers = 1\nlog.level = \"error\"\n{scenario}"
    )
}

fn nginx(start: &Start<'_>, port: u16) -> String {
    let Start { scenario, origin, certificate, .. } = start;
    let (listen, server) = match scenario {
        Scenario::RefuseKept | Scenario::RefuseNew => ("", "return 503 'busy\n';".to_owned()),
        Scenario::CacheHit => ("", "proxy_pass http://u; proxy_cache store; proxy_cache_lock on;".to_owned()),
        Scenario::Tls => (" ssl", "proxy_pass http://u;".to_owned()),
        Scenario::Http2 => (" http2", "proxy_pass http://u;".to_owned()),
        _ => ("", "proxy_pass http://u;".to_owned()),
    };
    format!(
        "pid {port}.pid; {NGINX_HEAD} proxy_cache_path store-{port} keys_zone=store:10m;
         upstream u {{ server {origin}; keepalive 128; keepalive_requests 1000000000; }}
         server {{ listen 127.0.0.1:{port}{listen}; ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.3;
         location / {{ proxy_http_version 1.1; proxy_set_header Connection ''; {server} }} }} }}",
        certificate = certificate.certificate.display(),
        key = certificate.key.display(),
    )
}

fn haproxy(start: &Start<'_>, port: u16) -> String {
    let Start { directory, scenario, origin, certificate, .. } = start;
    let action = match scenario {
        Scenario::RefuseKept | Scenario::RefuseNew => {
            "http-request return status 503 content-type text/plain string busy".to_owned()
        }
        Scenario::CacheHit => {
            format!("http-request cache-use c\n  http-response cache-store c\n  server u {origin}")
        }
        _ => format!("http-reuse always\n  server u {origin}"),
    };
    let bind = match scenario {
        Scenario::Http2 => " proto h2".to_owned(),
        Scenario::Tls => {
            // It wants both in one file.
            let read = |file: &Path| std::fs::read_to_string(file).expect("a file of this bench");
            let both = read(&certificate.certificate) + &read(&certificate.key);
            format!(" ssl crt {}", directory.write(&format!("{port}.pem"), &both).display())
        }
        _ => String::new(),
    };
    format!(
        "global\n  nbthread 1\n  maxconn 4096\ncache c\n  total-max-size 4\n  max-age 3600\ndefaults\n  mode http\n  timeout connect 5s\n  \
         timeout client 60s\n  timeout server 60s\nlisten l\n  bind 127.0.0.1:{port}{bind}\n  {action}\n"
    )
}
