//! `[kernel]`: refusing new connections before the TCP stack hears of them.

use crate::checks::word::variant;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use flashweir_core::limits;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{TRUSTED_PROXIES, network};
use super::{FlashCrowdMode, KernelTierFile, KernelTiers};
use crate::checks::address::{collide, socket_address};
use crate::checks::range::{duration_within, within};
use crate::error::Problem;
use crate::one_or_many::OneOrMany;
use crate::overrides::Overrides;
use crate::text::DurationText;

/// Refusing new connections in the kernel, before the TCP stack hears of them: for `flashweir run`, beside the gateway's
/// own refusals, and for `flashweir router`, alone. Needs Linux 5.18 or newer, root (or CAP_BPF, CAP_NET_ADMIN and
/// CAP_PERFMON) and a build with the feature `kernel`. Established connections are never touched, and nothing stays
/// behind when the process ends, unless `pin` says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KernelFile {
    /// The network interface clients come through, or a list of them: the gate stands before each. Also
    /// `--interface`. Default: none; `flashweir run` then leaves the kernel alone. On `lo` only the generic hook
    /// works. Needs a restart to change.
    /// Valid: at most 16 names.
    /// Example: `interface = ["eth0", "eth1"]`.
    pub interface: Option<OneOrMany>,
    /// Where on a packet's way the gate stands: `"native"` (in the interface's driver, before anything was made of the
    /// packet), `"generic"` (at the stack's door: every interface has it, and it costs about a microsecond more), or
    /// `"auto"` (the first where the driver can, else the second, and always on pairs of virtual interfaces (veth), which
    /// lose what their driver sends back). Needs a restart to change.
    /// Example: `hook = "generic"`.
    pub hook: KernelHook,
    /// Treatment of a new connection beyond the ceiling: `"answer"` (a whole 503 with `Retry-After`, from the kernel;
    /// where TLS is spoken, a reset), `"reset"` (the client learns at once, and nothing else), or `"drop"` (nothing: the
    /// client tries again after 1, 3 and 7 s; for crowds that are none of people).
    /// Example: `refusal = "reset"`.
    pub refusal: KernelRefusal,
    /// Networks whose new connections the kernel always lets in: offices, monitoring, partners. In `flashweir run` the
    /// gateway's own rules still judge their requests, and `client.trusted_proxies` are preferred as well, because each
    /// speaks for many. Too many: a crowd comes in with them.
    /// Valid: at most 3840 networks, none of them the whole Internet.
    /// Example: `preferred = ["192.0.2.0/24", "2001:db8::/48"]`.
    pub preferred: Vec<String>,
    /// The rank of new connections that no `[[kernel.tier]]` names by network, mark or port. Default: one less important
    /// than the least important that is listed, so that listed connections come first. Lower than a listed rank: those are
    /// then less important than all others, as for a network that only scrapes.
    /// Valid: `0` (the most important) to `7`.
    /// Example: `default_rank = 4`.
    pub default_rank: Option<u32>,
    /// How important which new connections are.
    pub tier: Vec<KernelTierFile>,
    /// A directory in a BPF file system (made if it is not there) in which the gate of each interface is pinned, as a file of
    /// the interface's name: it stands on when the process is stopped by SIGTERM or killed, with its last plan, and the
    /// next process takes it over, so that an upgrade leaves no gap. SIGINT takes it away, and so does deleting the file.
    /// One process for a directory. Also `--pin`. Default: none; the gate goes with the process. Needs root, and a restart
    /// to change.
    /// Valid: an absolute path.
    /// Example: `pin = "/sys/fs/bpf/flashweir"`.
    pub pin: Option<PathBuf>,
    /// Go on refusing by the last plan when Flashweir has said nothing to the kernel for three seconds. Off, the gate
    /// then lets everything in. On: a hung process leaves its last ceiling in force until it ends, and a pinned gate
    /// until the next process.
    /// Example: `fail_closed = true`.
    pub fail_closed: bool,
    /// Decide and record, but let everything in: to see what would happen. Also `--shadow`. What a detector in shadow
    /// says is never enforced here either.
    /// Example: `shadow = true`.
    pub shadow: bool,
    /// Only for `flashweir router`: the servers behind it, each an address and a port. `0.0.0.0` and `[::]` mean every
    /// address of that family. `flashweir run` protects what it listens on. Also `--protect`.
    /// Valid: at most 256 addresses.
    /// Example: `protect = ["198.51.100.10:80", "198.51.100.10:443"]`.
    pub protect: Vec<String>,
    /// Only for `flashweir router`: ports on which the protected servers speak TLS, so that an answer in the clear
    /// would not be understood and is a reset instead. `flashweir run` knows its own.
    /// Valid: at most 64 ports.
    /// Example: `tls_ports = [443, 8443]`.
    pub tls_ports: Vec<u16>,
    /// Only for `flashweir router`: flows followed at once to see how fast responses are; a further one takes the place
    /// of the one longest silent.
    /// Valid: `1024` to `1048576`. Raised: more memory, taken at the start. Lowered: under a crowd flows are forgotten
    /// before they have shown anything.
    /// Example: `flows = 262144`.
    pub flows: u32,
    /// Only for `flashweir router`: shortest time between two decisions, in place of `flash_crowd.interval`. Default: 1s
    /// for `"repaired"`; 1m for `"paper"` and `"scoreboard"`, as published.
    /// Valid: `1s` to `5m`. Raised: a crowd is noticed later. Lowered: decisions rest on fewer responses.
    /// Example: `interval = "5s"`.
    pub interval: Option<DurationText>,
}

impl Default for KernelFile {
    fn default() -> Self {
        Self {
            // No network is touched without a setting.
            interface: None,
            hook: KernelHook::default(),
            refusal: KernelRefusal::default(),
            preferred: Vec::new(),
            default_rank: None,
            // Importance is the operator's to say: without tiers all connections are equal.
            tier: Vec::new(),
            // What is left behind is left on purpose.
            pin: None,
            // Staying up comes before protecting.
            fail_closed: false,
            shadow: false,
            protect: Vec::new(),
            tls_ports: vec![443],
            flows: limits::KERNEL_FLOWS_DEFAULT,
            interval: None,
        }
    }
}

/// Where on a packet's way the gate stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KernelHook {
    /// In the driver where that can, at the stack's door otherwise.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// At the stack's door.
    Generic,
}

/// Treatment of a new connection beyond the ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KernelRefusal {
    // The only one that shows a person what happened and when to come back.
    /// A whole HTTP response of the kernel's own.
    #[default]
    Answer,
    /// A reset.
    Reset,
    /// Nothing.
    Drop,
}

impl KernelRefusal {
    /// The spelling of the configuration file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Reset => "reset",
            Self::Drop => "drop",
        }
    }
}

/// Settings of the gate in the kernel, before the TCP stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Before which interfaces the gate stands, each once; empty: none, and the kernel is left alone.
    pub interfaces: Vec<String>,
    /// Hook on a packet's way.
    pub hook: KernelHook,
    /// Treatment of a new connection beyond the ceiling.
    pub refusal: KernelRefusal,
    /// Networks whose new connections are let in all the same; none is the whole Internet.
    pub preferred: Vec<IpNet>,
    /// Ranks of new connections.
    pub tiers: KernelTiers,
    /// Directory of the gates' pins, an absolute path; `None`: they go with the process.
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

impl KernelFile {
    /// Puts the flags in place of what was written.
    pub(super) fn apply(&mut self, overrides: &Overrides) -> Result<(), Problem> {
        if !overrides.interfaces.is_empty() {
            self.interface = Some(OneOrMany(overrides.interfaces.clone()));
        }
        if !overrides.protect.is_empty() {
            self.protect.clone_from(&overrides.protect);
        }
        if let Some(interval) = overrides.interval {
            self.interval = Some(DurationText(interval));
        }
        if let Some(refusal) = &overrides.refusal {
            self.refusal = variant("kernel.refusal", refusal)?;
        }
        if let Some(pin) = &overrides.pin {
            self.pin = Some(pin.clone());
        }
        self.fail_closed |= overrides.fail_closed;
        self.shadow |= overrides.shadow;
        Ok(())
    }
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
    DurationText(mode.default_interval()).max(DurationText::from_secs(1))
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
        interface_name(&key(), name)?;
        if names[..index].contains(name) {
            return Err(Problem::new(key(), format!("`{name}` is listed twice, expected different ones")));
        }
    }
    Ok(names.clone())
}

/// A name that an interface can have.
pub(super) fn interface_name(key: &str, name: &str) -> Result<String, Problem> {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(fits) {
        let what = format!("`{name}` is no interface's name, expected one like \"eth0\"");
        return Err(Problem::new(key, what));
    }
    Ok(name.to_owned())
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
