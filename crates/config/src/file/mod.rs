//! What may be written in the configuration file.
//!
//! The doc comments of the fields are the manual: they become the JSON schema's descriptions and
//! `docs/config.md`. Each says what the key means, its valid range, what gets worse when it is raised or
//! lowered, and an example. The `Default` implementations are the one place where defaults live, each with
//! its reason; the manual prints them from there.

mod bounds;
mod candidate;
mod class;
mod client;
mod flash_crowd;
mod kernel;
mod kernel_tier;
mod listen;
mod one_or_many;
mod process;
mod sentry;
mod service;
mod upstream;

pub use bounds::BoundsFile;
pub use candidate::CandidateFile;
pub use class::{ApiKeysFile, ClassFile, FairBy, MatchFile};
pub use client::ClientFile;
pub use flash_crowd::{FlashCrowdFile, FlashCrowdMode};
pub use kernel::{KernelFile, KernelHook, KernelRefusal};
pub use kernel_tier::KernelTierFile;
pub use listen::{ListenFile, TlsFile};
pub use one_or_many::OneOrMany;
pub use process::{AdminFile, GatewayFile, LogFile, LogFormat, LogLevel, StateFile};
pub use sentry::{LadderStepFile, Policing, SentryFile};
pub use service::ServiceFile;
pub use upstream::{HealthFile, Protocol, UpstreamFile};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flashweir's configuration file is TOML. Every section and every key is optional except one upstream, which
/// may also be given as `--upstream URL`, or in a `[[service]]`. Flags win over the file. Unknown keys are errors. Durations are
/// written as `"500ms"`, `"2s"`, `"5m"` or `"1h"`, sizes as `"512B"`, `"16KiB"` or `"1MiB"`. File names are
/// relative to the configuration file. SIGHUP reloads the file; a wrong file is refused with one message and
/// the old configuration stays. Listen addresses, switching TLS on or off, the admin address, the number of
/// workers and the interfaces guarded in the kernel change only at a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Where clients connect.
    pub listen: ListenFile,
    /// The service that is protected: the one for every host that no `[[service]]` names. Where there is a `[[service]]`
    /// it may be left out, and then requests for other hosts are answered with 421 (Misdirected Request).
    pub upstream: UpstreamFile,
    /// How the service's capacity is given out, and how fast it is to answer.
    pub sentry: SentryFile,
    /// A class of requests to the service, and what it is worth.
    pub class: Vec<ClassFile>,
    /// Another policy for the service, to be compared with the one in force.
    pub candidate: Option<CandidateFile>,
    /// A service with hosts of its own.
    #[serde(deserialize_with = "service::services")]
    pub service: Vec<ServiceFile>,
    /// Who the clients are and what one of them may hold.
    pub client: ClientFile,
    /// Bounds and timeouts of the gateway itself. A full bound answers; it never hangs.
    pub bounds: BoundsFile,
    /// Detection of flash crowds and the ceiling on admission (NEWS).
    pub flash_crowd: FlashCrowdFile,
    /// Refusing new connections in the kernel.
    pub kernel: KernelFile,
    /// The listener for health, metrics, status and explanations.
    pub admin: AdminFile,
    /// What is kept across restarts.
    pub state: StateFile,
    /// This gateway as a whole.
    pub gateway: GatewayFile,
    /// Messages on standard error.
    pub log: LogFile,
}
