//! `flashweir router`.

use std::path::PathBuf;
use std::time::Duration;

use flashweir_config::{Overrides, RouterConfig};
use flashweir_core::duration_text;
use flashweir_runtime::ReadyFile;

use crate::{logging, ready_file};
use flashweir_config::command::environment;
#[cfg(not(feature = "kernel"))]
use flashweir_config::command::exit::UsageError;

/// Protect every server behind a router, with no help from them: refuse the new connections that are too
/// many.
///
/// No proxy: packets are only watched and, while a crowd is there, new connections refused in the kernel, on
/// the interface that clients come through. Established connections are never touched. With --link, alone or
/// beside it, flows that do not respond to congestion are cut to their fair share of a link. Needs root, and
/// leaves the network as it was however it ends, but for --pin. Flags win over the file. SIGHUP reloads the
/// file, SIGTERM and SIGINT stop.
#[derive(Debug, clap::Args)]
pub(crate) struct RouterArgs {
    /// The interface that faces the clients; repeat it for several.
    #[arg(long = "interface", value_name = "IF")]
    interfaces: Vec<String>,
    /// A server behind the router, address and port (`0.0.0.0` or `[::]` for every address); repeat it for
    /// several.
    #[arg(long = "protect", value_name = "ADDR:PORT")]
    protect: Vec<String>,
    /// The configuration file (TOML): `[kernel]`, `[link]`, `[flash_crowd]`, `[admin]`, `[state]` and `[log]`
    /// of it are read.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The interface of a link that is to be divided fairly; needs --link-rate.
    #[arg(long, value_name = "IF")]
    link: Option<String>,
    /// Capacity of that link, bits a second: `10mbit`.
    #[arg(long, value_name = "RATE")]
    link_rate: Option<String>,
    /// Which packets of the link are divided: egress (those that leave by the interface) or ingress [default:
    /// egress].
    #[arg(long, value_name = "SIDE")]
    link_side: Option<String>,
    /// Definition of one flow of the link: five_tuple, source or source_prefix [default: five_tuple].
    #[arg(long, value_name = "FLOW")]
    link_flow: Option<String>,
    /// Time between two decisions, 1s to 5m [default: 1s; 1m for paper and scoreboard].
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    interval: Option<Duration>,
    /// The rules that decide: repaired, paper or scoreboard [default: repaired].
    #[arg(long, value_name = "RULES")]
    mode: Option<String>,
    /// Treatment of a new connection beyond the ceiling: answer (a 503 from the kernel), reset or drop
    /// [default: answer].
    #[arg(long, value_name = "HOW")]
    refusal: Option<String>,
    /// Decide and record, but never refuse.
    #[arg(long)]
    shadow: bool,
    /// Where health, metrics, status and explanations are served [default: 127.0.0.1:9900].
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Pin the gate of each interface in this directory of a BPF file system: it stays when this process is
    /// stopped by SIGTERM or killed, until the next takes it over. SIGINT takes it away.
    #[arg(long, value_name = "DIR")]
    pin: Option<PathBuf>,
    /// Go on refusing when this process has fallen silent, until it ends.
    #[arg(long)]
    fail_closed: bool,
    /// Where the learned baseline survives a restart.
    #[arg(long, value_name = "FILE")]
    state_file: Option<PathBuf>,
    /// Write where its admin listener is into FILE, as JSON, once it guards.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// The least important messages shown: error, warn, info, debug or trace [default: info].
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

impl RouterArgs {
    /// Checks the configuration before anything is attached, then guards until it is stopped.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let overrides = Overrides {
            interfaces: self.interfaces,
            protect: self.protect,
            interval: self.interval,
            mode: self.mode,
            refusal: self.refusal,
            link: self.link,
            link_rate: self.link_rate,
            link_side: self.link_side,
            link_flow: self.link_flow,
            shadow: self.shadow,
            pin: self.pin,
            fail_closed: self.fail_closed,
            admin_address: self.admin,
            state_file: self.state_file,
            state_directory: environment::state_directory(),
            log_level: self.log,
            ..Overrides::default()
        };
        let config = RouterConfig::load(self.config.as_deref(), &overrides)?;
        let ready_file = ready_file::prepare(self.ready_file)?;
        logging::start(&config.log);
        guard(config, self.config, overrides, ready_file)
    }
}

#[cfg(feature = "kernel")]
fn guard(
    config: RouterConfig,
    config_file: Option<PathBuf>,
    overrides: Overrides,
    ready_file: Option<ReadyFile>,
) -> anyhow::Result<()> {
    flashweir_router::run(flashweir_router::Launch { config, config_file, overrides, ready_file })?;
    Ok(())
}

#[cfg(not(feature = "kernel"))]
fn guard(
    _config: RouterConfig,
    _config_file: Option<PathBuf>,
    _overrides: Overrides,
    _ready_file: Option<ReadyFile>,
) -> anyhow::Result<()> {
    Err(UsageError::new(
        "this flashweir was built without programs for the kernel; build it with `--features kernel` (it takes clang and the \
         headers of libbpf, libelf and zlib)",
    )
    .into())
}
