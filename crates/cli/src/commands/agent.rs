//! `flashweir agent`.

use crate::{logging, ready_file};
use flashweir_agent::{AgentSettings, MeasuredScope};
use flashweir_config::Log;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Report what a service's machine is short of: processor, memory, disk, or nothing.
///
/// Runs beside a service, reads what Linux accounts for its control group or process once a second, and
/// answers `/load` with utilisation, pressure and queues, in ORCA's fields too. A gateway asks for it
/// (`agents` in `[upstream]`), names the shortage in its verdict, and gives busier servers less. Needs no
/// privileges for a service of the same user.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// Where to answer; port 0 takes a free one, named on stdout. Every client that can connect can read it.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9901")]
    listen: SocketAddr,
    /// The service's process; its descendants count with it. Without this and --cgroup the whole machine is
    /// looked at.
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pid: Option<u32>,
    /// The service's control group (version 2): a directory, or its path below the hierarchy's root.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Where the service listens: what waits there is reported.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// A name with a dot that it may be asked for by. May be given several times.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Write where it listens into FILE, as JSON, once it does.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl AgentArgs {
    /// Reports until a signal.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        logging::start(&Log::default());
        let scope = match (self.pid, self.cgroup) {
            (Some(pid), _) => MeasuredScope::Process(pid),
            (None, Some(group)) => MeasuredScope::Group(group),
            (None, None) => MeasuredScope::Machine,
        };
        let Self { listen, port, hosts, ready_file, .. } = self;
        let ready_file = ready_file::prepare(ready_file)?;
        let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        Ok(flashweir_agent::run(&AgentSettings { listen, hosts, scope, port, ready_file })?)
    }
}
