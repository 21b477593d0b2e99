//! `flashweir replica`.

use std::net::SocketAddr;
use std::path::PathBuf;

use flashweir_config::{Config, DurationText, Overrides, ReplicaFlags, SizeText};
use flashweir_gateway::Launch;

use crate::{kubernetes, logging, ready_file};
use flashweir_config::command::exit::UsageError;
use flashweir_config::command::numbers::within;

/// Keep copies of an origin's documents, and report the load to redirectors.
///
/// A document is fetched when its first request comes, once for all who ask meanwhile, and answered from
/// memory as long as HTTP allows; what no cache may keep is passed on to the origin. Reports say how many
/// requests came and for which documents; a redirector (`flashweir run` with `[replication]`,
/// docs/replication.md) sends requests accordingly.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplicaArgs {
    /// The origin, http://HOST:PORT or https://HOST:PORT; repeat it for several servers.
    #[arg(long = "of", value_name = "URL", required = true)]
    of: Vec<String>,
    /// Where clients and redirectors connect; repeat it for several addresses.
    #[arg(long = "listen", value_name = "ADDR", required = true)]
    listen: Vec<String>,
    /// The admin listener of a redirector that gets reports; repeat it for several.
    #[arg(long = "report-to", value_name = "URL")]
    report_to: Vec<String>,
    /// How the redirectors know this replica [default: http:// and the first --listen].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The site's host, for clients that were redirected here and ask by this replica's name [default: the
    /// origin's].
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Between two reports; the same as the redirectors' [default: 10s].
    #[arg(long, value_name = "TIME")]
    interval: Option<DurationText>,
    /// Requests a second from which on this replica is overloaded and reports at once [default: 300].
    #[arg(long, value_name = "RATE", value_parser = within(1.0, 1e6))]
    high_watermark: Option<f64>,
    /// Memory for copies [default: 64MiB].
    #[arg(long, value_name = "SIZE")]
    memory: Option<SizeText>,
    /// A configuration file for everything else.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where health, metrics, status and purges are served; port 0 takes a free one, named in the log.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    admin: String,
    /// Worker threads; 0 means one for each core.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Write where it listens into FILE, as JSON, once it does; for supervisors, and with port 0.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// The least important messages shown: error, warn, info, debug or trace [default: info].
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

impl ReplicaArgs {
    /// Checks everything before a port opens, then serves until a signal.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let replica = ReplicaFlags {
            url: self.known_as()?,
            report_to: self.report_to,
            host: self.host,
            interval: self.interval.map(|interval| interval.0),
            high_watermark: self.high_watermark,
            memory_bytes: self.memory.map(|memory| memory.0),
        };
        let overrides = Overrides {
            upstream_urls: self.of,
            listen_addresses: self.listen,
            admin_address: Some(self.admin),
            workers: Some(self.workers),
            log_level: self.log,
            replica: Some(replica),
            ..Overrides::default()
        };
        let config = Config::load(self.config.as_deref(), &overrides)?;
        logging::start(&config.log);
        let cluster = kubernetes::join(&config, None)?;
        flashweir_gateway::run(Launch {
            listeners: Vec::new(),
            config,
            config_file: self.config,
            overrides,
            record: None,
            servers: None,
            cluster,
            ready_file: ready_file::prepare(self.ready_file)?,
        })?;
        Ok(())
    }

    /// URL by which redirectors know this replica.
    fn known_as(&self) -> Result<Option<String>, UsageError> {
        let Some(first) = self.listen.first().filter(|_| self.url.is_none()) else {
            return Ok(self.url.clone());
        };
        let is_chosen_by_the_system = first.parse::<SocketAddr>().is_ok_and(|address| address.port() == 0);
        if is_chosen_by_the_system && !self.report_to.is_empty() {
            return Err(UsageError::new(format!(
                "--listen {first}: redirectors cannot know a port that the system chooses, expected --url with the replica's URL"
            )));
        }
        Ok(Some(format!("http://{first}")))
    }
}
