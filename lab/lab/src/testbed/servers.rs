//! The servers of a scene.

use super::control_group::ControlGroup;
use super::network::{NEIGHBOUR, Network, TARGET};
use crate::experiments::testbed::{Beside, Scene, Server};
use anyhow::{Context as _, bail};
use flashweir_core::Rng;
use flashweir_load::Paths;
use flashweir_testbed::origin::{Cold, Origin, Settings};
use flashweir_testbed::{Running, Testbed, program};
use flashweir_workload::documents::Pareto;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Pages of Pareto sizes: enough for the mean of any thousand requests to be the distribution's.
const PAGES: u32 = 1_000;
/// Their sizes are drawn from this: the same pages in every run.
const PAGES_SEED: u64 = 1;
const STARTS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Running servers, gone when dropped.
pub(super) struct Servers {
    /// Paths that the crowd asks for.
    pub(super) paths: Paths,
    // In this order: a group can be removed once no process is in it.
    _nginx: Vec<Nginx>,
    _origin: Option<Origin>,
    pub(super) group: Option<ControlGroup>,
}

impl Servers {
    pub(super) fn start(network: &Network, scene: &Scene) -> anyhow::Result<Self> {
        let testbed = &network.testbed;
        let mut servers = Self { paths: one_path("/"), _nginx: Vec::new(), _origin: None, group: None };
        match scene.server {
            Server::Processor { work_ms } => {
                let origin = testbed.inside(TARGET, || origin(network.target, work_ms))?;
                servers._origin = Some(origin.context("the origin cannot start")?);
            }
            Server::Pages => {
                let (nginx, paths) =
                    nginx_with_pages(testbed, TARGET, network.target, PAGES, pareto_bytes())?;
                (servers.paths, servers._nginx) = (paths, vec![nginx]);
            }
            Server::PagesShortOfMemory { memory_bytes, page_bytes, pages, disk_bytes_per_s } => {
                let bytes = (0..pages).map(|_| page_bytes);
                let (nginx, paths) = nginx_with_pages(testbed, TARGET, network.target, pages, bytes)?;
                let directory = nginx.directory.path();
                let group = ControlGroup::new(memory_bytes, disk_bytes_per_s, directory)?;
                group.take_in(nginx.process.id())?;
                nginx.forget_pages(pages)?;
                (servers.paths, servers._nginx, servers.group) = (paths, vec![nginx], Some(group));
            }
        }
        if let (Some(neighbour), Beside::Readers { .. }) = (network.neighbour, &scene.beside) {
            let (nginx, _) = nginx_with_pages(testbed, NEIGHBOUR, neighbour, PAGES, pareto_bytes())?;
            servers._nginx.push(nginx);
        }
        Ok(servers)
    }
}

/// Paths that readers of the neighbour ask for: the same pages.
pub(super) fn pages(count: u32) -> Paths {
    Paths::Table((0..count).map(|number| format!("/{number}").into_boxed_str()).collect::<Arc<[_]>>())
}

pub(super) const NEIGHBOURS_PAGES: u32 = PAGES;

/// Accepts one client and sends to it until it leaves.
pub(super) fn send_without_end(listener: &TcpListener) -> std::io::Result<()> {
    let (mut client, _) = listener.accept()?;
    let chunk = [0; 8 << 10];
    while client.write_all(&chunk).is_ok() {}
    Ok(())
}

fn one_path(path: &str) -> Paths {
    Paths::Table([path.into()].into())
}

/// Nine tenths of them below 10 kB (§4.3.1).
fn pareto_bytes() -> impl Iterator<Item = u64> {
    // Holds because the numbers are valid constants.
    let pareto = Pareto::with_minimum(1.2, 800.0, 100_000).expect("a valid distribution");
    let mut rng = Rng::new(PAGES_SEED);
    std::iter::repeat_with(move || pareto.draw(&mut rng))
}

/// A tenth of a second each.
const CALIBRATIONS: u32 = 20;

fn origin(listen: SocketAddr, work_ms: f64) -> std::io::Result<Origin> {
    Origin::start(Settings {
        listen,
        workers: NonZeroUsize::MIN,
        work_ms,
        wait_ms: 0.0,
        cold: Cold::default(),
        body_bytes: 1_024,
        iterations_per_ms: Some(undisturbed_iterations_per_ms()),
    })
}

/// Iterations of work in a millisecond, once for all runs: the fastest of several measurements, since others
/// on the machine can only make them slower, and by half from one moment to the next.
fn undisturbed_iterations_per_ms() -> f64 {
    static KNOWN: OnceLock<f64> = OnceLock::new();
    *KNOWN
        .get_or_init(|| (0..CALIBRATIONS).map(|_| flashweir_testbed::origin::calibrate()).fold(0.0, f64::max))
}

struct Nginx {
    process: Running,
    directory: TempDir,
}

fn nginx_with_pages(
    testbed: &Testbed,
    namespace: &str,
    address: SocketAddr,
    count: u32,
    bytes: impl Iterator<Item = u64>,
) -> anyhow::Result<(Nginx, Paths)> {
    let directory = TempDir::new().context("no temporary directory for nginx")?;
    let files = directory.path().join("files");
    std::fs::create_dir(&files)?;
    let content = vec![b'x'; 1 << 20];
    for (number, bytes) in (0..count).zip(bytes) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(content.len());
        std::fs::write(files.join(number.to_string()), &content[..bytes])?;
    }
    let process = start_nginx(testbed, namespace, address, directory.path())?;
    Ok((Nginx { process, directory }, pages(count)))
}

/// One process, which stays the user that started it and so reads its files; a connection for each request.
fn start_nginx(
    testbed: &Testbed,
    namespace: &str,
    address: SocketAddr,
    root: &Path,
) -> anyhow::Result<Running> {
    let Some(program) = program("nginx") else {
        bail!("the program `nginx` is missing (Debian package nginx-light)");
    };
    let text = root.display();
    let config = format!(
        "daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 32768; pid {text}/pid; error_log \
         {text}/errors;\nevents {{ worker_connections 16384; }}\nhttp {{ access_log off; sendfile on; keepalive_timeout 0; \
         client_body_temp_path {text}/body; proxy_temp_path {text}/proxy; fastcgi_temp_path {text}/fastcgi; \
         uwsgi_temp_path {text}/uwsgi; scgi_temp_path {text}/scgi;\nserver {{ listen {address} backlog=16384; root \
         {text}/files; }} }}\n"
    );
    std::fs::write(root.join("nginx.conf"), config)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(root).args(["-c", "nginx.conf"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = testbed.start(namespace, &mut command)?;
    let deadline = Instant::now() + STARTS_WITHIN;
    while testbed.inside(namespace, || TcpStream::connect(address))?.is_err() {
        if process.ended()?.is_some() || Instant::now() > deadline {
            let said = std::fs::read_to_string(root.join("errors")).unwrap_or_default();
            bail!("nginx does not start: {}", said.trim());
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    Ok(process)
}

impl Nginx {
    /// Makes the kernel forget the pages' content: who reads a page first pays for its place in memory.
    fn forget_pages(&self, count: u32) -> anyhow::Result<()> {
        use rustix::fs::{Advice, fadvise};
        for number in 0..count {
            let path: PathBuf = self.directory.path().join("files").join(number.to_string());
            let file = std::fs::File::open(&path)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }
}
