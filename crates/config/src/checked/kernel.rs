//! Checks `[kernel]`.

use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use flashweir_core::limits;
use ipnet::IpNet;

use super::address::{collide, socket_address};
use super::client::{TRUSTED_PROXIES, network};
use super::kernel_tiers::KernelTiers;
use super::range::{duration_within, within};
use crate::error::Problem;
use crate::file::{FlashCrowdMode, KernelFile, KernelHook, KernelRefusal};
use crate::overrides::Overrides;
use crate::text::DurationText;

/// What is done in the kernel, before the TCP stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Before which interfaces the gate stands, each once; empty: none, and the kernel is left alone.
    pub interfaces: Vec<String>,
    /// Where on a packet's way.
    pub hook: KernelHook,
    /// What becomes of a new connection that does not fit.
    pub refusal: KernelRefusal,
    /// Whose new connections are let in all the same; none is everybody.
    pub preferred: Vec<IpNet>,
    /// How important which new connections are.
    pub tiers: KernelTiers,
    /// Where the gates are pinned, an absolute path; `None`: they go with the process.
    pub pin: Option<PathBuf>,
    /// Go on refusing when nothing is heard of user space.
    pub fail_closed: bool,
    /// Decide and record, never refuse.
    pub shadow: bool,
    /// The servers behind a router; no two collide, no port is 0.
    pub protect: Vec<SocketAddr>,
    /// Ports on which they speak TLS; not 0.
    pub tls_ports: Vec<u16>,
    /// Flows a router follows at once.
    pub flows: u32,
    /// Shortest time between two decisions of a router.
    pub interval: Duration,
}

impl Kernel {
    pub(super) fn check(
        file: &KernelFile,
        mode: FlashCrowdMode,
        overrides: &Overrides,
    ) -> Result<Self, Problem> {
        let kernel = Self {
            interfaces: interfaces(file)?,
            hook: file.hook,
            refusal: file.refusal,
            preferred: preferred(&file.preferred)?,
            tiers: KernelTiers::check(file)?,
            pin: pin(file)?,
            fail_closed: file.fail_closed,
            shadow: file.shadow,
            protect: protect(&file.protect)?,
            tls_ports: tls_ports(&file.tls_ports)?,
            flows: within("kernel.flows", file.flows, FLOWS_LEAST, limits::KERNEL_FLOWS)?,
            interval: duration_within(
                "kernel.interval",
                file.interval.unwrap_or_else(|| default_interval(mode)),
                DurationText::from_secs(1),
                DurationText::from_secs(300),
            )?,
        };
        if overrides.kernel {
            kernel.require_interface()?;
        }
        Ok(kernel)
    }

    pub(super) fn require_interface(&self) -> Result<(), Problem> {
        if self.interfaces.is_empty() {
            let what = "no interface, expected the one clients come through, here or as --interface NAME";
            return Err(Problem::new(INTERFACE, what));
        }
        Ok(())
    }
}

const INTERFACE: &str = "kernel.interface";
/// Fewer say nothing about a crowd.
const FLOWS_LEAST: u32 = 1_024;
/// Bytes of an interface's name, the ending zero left out (linux/if.h: IFNAMSIZ).
const NAME_BYTES: usize = 15;

/// A router decides on what passes by, which takes a while to be enough: not ten times a second.
fn default_interval(mode: FlashCrowdMode) -> DurationText {
    mode.default_interval().max(DurationText::from_secs(1))
}

fn interfaces(file: &KernelFile) -> Result<Vec<String>, Problem> {
    let Some(written) = &file.interface else { return Ok(Vec::new()) };
    let names = &written.0;
    if names.len() > limits::KERNEL_INTERFACES {
        let what = format!("{} interfaces, expected at most {}", names.len(), limits::KERNEL_INTERFACES);
        return Err(Problem::new(INTERFACE, what));
    }
    for (index, name) in names.iter().enumerate() {
        let key = || if names.len() == 1 { INTERFACE.to_owned() } else { format!("{INTERFACE}[{index}]") };
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(fits) {
            let what = format!("`{name}` is no interface's name, expected one like \"eth0\"");
            return Err(Problem::new(key(), what));
        }
        if names[..index].contains(name) {
            return Err(Problem::new(key(), format!("`{name}` is listed twice, expected different ones")));
        }
    }
    Ok(names.clone())
}

fn pin(file: &KernelFile) -> Result<Option<PathBuf>, Problem> {
    if let Some(path) = file.pin.as_ref().filter(|path| !path.is_absolute()) {
        let what = format!(
            "`{}` is no absolute path, expected a directory like \"/sys/fs/bpf/flashweir\"",
            path.display()
        );
        return Err(Problem::new("kernel.pin", what));
    }
    Ok(file.pin.clone())
}

fn preferred(texts: &[String]) -> Result<Vec<IpNet>, Problem> {
    let key = "kernel.preferred";
    // A gateway prefers the proxies it trusts as well.
    let most = limits::KERNEL_PREFERRED_NETWORKS - TRUSTED_PROXIES;
    if texts.len() > most {
        return Err(Problem::new(key, format!("{} networks, expected at most {most}", texts.len())));
    }
    let networks = texts.iter().enumerate().map(|(index, text)| {
        let key = format!("{key}[{index}]");
        let network = network(&key, text)?;
        if network.prefix_len() == 0 {
            return Err(Problem::new(key, format!("`{text}` prefers everybody, expected networks you know")));
        }
        Ok(network)
    });
    networks.collect()
}

fn protect(texts: &[String]) -> Result<Vec<SocketAddr>, Problem> {
    let key = "kernel.protect";
    let most = limits::KERNEL_ENDPOINTS;
    if texts.len() > most {
        return Err(Problem::new(key, format!("{} addresses, expected at most {most}", texts.len())));
    }
    let mut addresses: Vec<SocketAddr> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let key = format!("{key}[{index}]");
        let address = socket_address(&key, text)?;
        if address.port() == 0 {
            return Err(Problem::new(key, format!("`{text}` has no port, expected the server's")));
        }
        if let Some(other) = addresses.iter().find(|other| collide(**other, address)) {
            return Err(Problem::new(
                key,
                format!("{address} is covered by {other}, expected different ones"),
            ));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn tls_ports(ports: &[u16]) -> Result<Vec<u16>, Problem> {
    let key = "kernel.tls_ports";
    if ports.len() > limits::KERNEL_TLS_PORTS {
        let what = format!("{} ports, expected at most {}", ports.len(), limits::KERNEL_TLS_PORTS);
        return Err(Problem::new(key, what));
    }
    match ports.iter().position(|port| *port == 0) {
        Some(index) => Err(Problem::new(format!("{key}[{index}]"), "0 is no port, expected 1 to 65535")),
        None => Ok(ports.to_vec()),
    }
}
