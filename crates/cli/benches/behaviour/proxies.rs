//! The four proxies with usual settings: connections to the origin kept, the client's address passed on,
//! HTTP/2 in the clear where it can be had. Each has one configuration file in a separate folder and is ended
//! by its id.

use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Process, require_program, reserve_address};
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time until a server listens.
const START_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two tries to connect.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time for a program to print its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Flashweir,
    Nginx,
    Haproxy,
    Caddy,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Flashweir, Self::Nginx, Self::Haproxy, Self::Caddy];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flashweir => "Flashweir",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Caddy => "Caddy",
        }
    }

    /// The configuration, with the origin's address and those to listen at; `folder` takes files of the proxy
    /// itself.
    fn config(self, origin: &str, listen: [SocketAddr; 2], folder: &Path) -> String {
        let ([http1, http2], folder) = (listen, folder.display());
        match self {
            Self::Flashweir => format!("upstream.urls = [\"http://{origin}\"]\n"),
            Self::Nginx => format!(
                "daemon off; master_process off; worker_processes 1; pid pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path body; proxy_temp_path proxy;
  fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin {{ server {origin}; keepalive 16; }}
  server {{
    listen {http1}; listen {http2} http2;
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection '';
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
"
            ),
            Self::Haproxy => format!(
                "global
  nbthread 1
  maxconn 1024
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
listen all
  bind {http1}
  bind {http2} proto h2
  option forwardfor
  server origin {origin}
"
            ),
            Self::Caddy => format!(
                "{{
  admin off
  auto_https off
  storage file_system {folder}/storage
  servers {{
    protocols h1 h2c
  }}
}}
http://:{} {{
  bind {}
  reverse_proxy {origin}
}}
",
                http1.port(),
                http1.ip()
            ),
        }
    }

    /// Language of the configuration, for the page.
    pub(crate) fn language(self) -> &'static str {
        match self {
            Self::Flashweir => "toml",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddyfile",
        }
    }

    /// The configuration as it is printed on the page.
    pub(crate) fn shown_config(self) -> String {
        let listen = [8080, 8081].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        self.config("127.0.0.1:3000", listen, Path::new("/var/lib/caddy"))
    }
}

/// The programs; those of other projects may be missing.
pub(crate) struct Programs {
    flashweir: Flashweir,
    others: Vec<(Kind, Option<PathBuf>)>,
}

/// A proxy that listens; ended when dropped.
pub(crate) struct Running {
    pub(crate) http1: SocketAddr,
    pub(crate) http2: SocketAddr,
    process: Server,
}

enum Server {
    Flashweir(Box<Gateway>),
    Other(Process, #[expect(dead_code, reason = "the folder lives as long as the process")] TempDir),
}

impl Running {
    /// Identifier of its process.
    pub(crate) fn id(&self) -> u32 {
        match &self.process {
            Server::Flashweir(gateway) => gateway.process().id(),
            Server::Other(process, _) => process.id(),
        }
    }
}

impl Programs {
    pub(crate) fn find() -> Self {
        let find = |(kind, name)| (kind, require_program(name, "a column of the comparison of behaviour"));
        let others = [(Kind::Nginx, "nginx"), (Kind::Haproxy, "haproxy"), (Kind::Caddy, "caddy")].map(find);
        Self { flashweir: Flashweir::new(env!("CARGO_BIN_EXE_flashweir")), others: others.into() }
    }

    /// The first line in which the program says its version.
    pub(crate) fn version(&self, kind: Kind) -> String {
        let folder = TempDir::new().expect("a fresh directory");
        let finished = match (kind, self.path(kind)) {
            (Kind::Flashweir, _) => self.flashweir.run(["--version"]),
            (_, None) => return format!("{}: not installed", kind.name()),
            (Kind::Caddy, Some(path)) => Process::run(path, folder.path(), VERSION_WITHIN, ["version"]),
            (_, Some(path)) => Process::run(path, folder.path(), VERSION_WITHIN, ["-v"]),
        };
        let text = finished.stdout + &finished.stderr;
        let line = text.lines().next().unwrap_or_default().trim();
        if kind == Kind::Caddy { format!("Caddy {line}") } else { line.to_owned() }
    }

    fn path(&self, kind: Kind) -> Option<&Path> {
        self.others.iter().find(|(known, _)| *known == kind).and_then(|(_, path)| path.as_deref())
    }

    /// Starts a proxy in front of the origin, or says why it cannot be started.
    pub(crate) fn start(&self, kind: Kind, origin: SocketAddr) -> Result<Running, String> {
        if kind == Kind::Flashweir {
            let gateway = GatewayBuilder::new(&self.flashweir).upstream(&format!("http://{origin}")).start();
            let address = gateway.address();
            let process = Server::Flashweir(Box::new(gateway));
            return Ok(Running { http1: address, http2: address, process });
        }
        let program = self.path(kind).ok_or_else(|| "not installed".to_owned())?;
        let folder = TempDir::new().expect("a fresh directory");
        // One listener of Caddy speaks both.
        let http1 = reserve_address();
        let http2 = if kind == Kind::Caddy { http1 } else { reserve_address() };
        let config = folder.path().join("config");
        let text = kind.config(&origin.to_string(), [http1, http2], folder.path());
        std::fs::write(&config, text).expect("a writable directory");
        let (config, place) = (config.into_os_string(), folder.path().as_os_str().to_owned());
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let (program, arguments) = match kind {
            Kind::Haproxy => (program, [words(&["-db", "-f"]), vec![config]].concat()),
            // `env` becomes the program, so the id stays; Caddy writes into its home.
            Kind::Caddy => {
                let mut home = OsString::from("HOME=");
                home.push(place);
                let run = words(&["run", "--adapter", "caddyfile", "--config"]);
                (Path::new("/usr/bin/env"), [vec![home, program.into()], run, vec![config]].concat())
            }
            _ => (
                program,
                [words(&["-e", "stderr", "-p"]), vec![place], words(&["-c"]), vec![config]].concat(),
            ),
        };
        let mut process = Process::start(program, folder.path(), arguments);
        for address in [http1, http2] {
            wait_for(&mut process, address)?;
        }
        Ok(Running { http1, http2, process: Server::Other(process, folder) })
    }
}

fn wait_for(process: &mut Process, address: SocketAddr) -> Result<(), String> {
    let deadline = Instant::now() + START_WITHIN;
    while TcpStream::connect(address).is_err() {
        if let Some(status) = process.ended() {
            let output = process.stderr();
            let last = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            return Err(format!("it ended at its start ({status}): {last}"));
        }
        if Instant::now() >= deadline {
            return Err(format!("it did not listen within {} s", START_WITHIN.as_secs()));
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(())
}

/// Processor time of a process so far, by the scheduler's account of its threads.
pub(crate) fn processor_time(id: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let account = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(account).sum())
}
