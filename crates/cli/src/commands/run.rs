//! `flashweir run`.

use std::path::PathBuf;

use flashweir_config::{Config, Overrides};
use flashweir_gateway::{Launch, inherited_listeners};

use crate::{kubernetes, logging, ready_file};
use flashweir_config::command::environment;
use flashweir_config::command::exit::UsageError;

/// Protect a service: a reverse proxy in front of it that is invisible until a crowd comes.
///
/// Flags win over the file. SIGHUP reloads the file, SIGTERM and SIGINT finish what was begun and stop.
/// Sockets of the service manager (LISTEN_FDS) take the place of the addresses to listen on.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The service, http://HOST:PORT or https://HOST:PORT; repeat it for several servers.
    #[arg(long = "upstream", value_name = "URL")]
    upstreams: Vec<String>,
    #[command(flatten)]
    kubernetes: kubernetes::UpstreamArgs,
    #[command(flatten)]
    cluster: kubernetes::ClusterArgs,
    /// Where clients connect; repeat it for several addresses [default: 127.0.0.1:8080].
    #[arg(long = "listen", value_name = "ADDR")]
    listen: Vec<String>,
    /// The configuration file (TOML); `flashweir config reference` lists the accepted settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where health, metrics, status and explanations are served [default: 127.0.0.1:9900].
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Refuse the part of a crowd that could only be refused in the kernel, before the TCP stack hears of it;
    /// on also where the file names an interface in `[kernel]`. Needs root.
    #[arg(long, hide_short_help = true)]
    kernel: bool,
    /// The network interface clients come through, for --kernel; repeat it for several.
    #[arg(long = "interface", value_name = "NAME", requires = "kernel", hide_short_help = true)]
    interfaces: Vec<String>,
    /// Pin the gate of each interface in this directory of a BPF file system: it stays when this process is
    /// stopped by SIGTERM or killed, until the next takes it over. SIGINT takes it away.
    #[arg(long, value_name = "DIR", requires = "kernel", hide_short_help = true)]
    pin: Option<PathBuf>,
    /// Let the kernel go on refusing when nothing is heard of the gateway for 3 s, in place of admitting
    /// every connection.
    #[arg(long, requires = "kernel", hide_short_help = true)]
    fail_closed: bool,
    /// Decide and record, but never refuse because of a crowd or for the service's capacity.
    #[arg(long)]
    shadow: bool,
    /// Where the learned baseline survives a restart.
    #[arg(long, value_name = "FILE")]
    state_file: Option<PathBuf>,
    /// Record what the planners see and decide in FILE, for `flashweir replay`: about 20 MB for each segment,
    /// full ones kept as FILE.0, FILE.1, … (24 at most). What FILE held is lost.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    record: Option<PathBuf>,
    /// Worker threads; 0 means one for each core [default: 0].
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Write where it listens into FILE, as JSON, once it does; for supervisors, and with port 0.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ready_file: Option<PathBuf>,
    /// The least important messages shown: error, warn, info, debug or trace [default: info].
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

impl RunArgs {
    /// Checks the configuration before any port opens, then serves until it is stopped.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut overrides = Overrides {
            upstream_urls: self.upstreams,
            listen_addresses: self.listen,
            admin_address: self.admin,
            kernel: self.kernel,
            interfaces: self.interfaces,
            pin: self.pin,
            fail_closed: self.fail_closed,
            shadow: self.shadow,
            state_file: self.state_file,
            state_directory: environment::state_directory(),
            workers: self.workers,
            log_level: self.log,
            ..Overrides::default()
        };
        self.cluster.apply(&mut overrides);
        let servers = self.kubernetes.follow(self.config.as_deref(), &mut overrides)?;
        let config = Config::load(self.config.as_deref(), &overrides)?;
        if servers.is_none() {
            logging::start(&config.log);
        }
        let cluster = kubernetes::join(&config, self.kubernetes.kubeconfig(&config)?)?;
        let (config_file, record) = (self.config, self.record);
        let ready_file = ready_file::prepare(self.ready_file)?;
        let listeners = inherited_listeners().map_err(|error| UsageError::new(error.to_string()))?;
        flashweir_gateway::run(Launch {
            config,
            config_file,
            overrides,
            record,
            servers,
            cluster,
            listeners,
            ready_file,
        })?;
        Ok(())
    }
}
