//! The sections of the configuration file: the one list of them, and a module for each.
//!
//! A section's module holds what may be written ([`File`] and what is in it), its check, the flags that win over it, and
//! the settings that a component gets. The doc comments of what may be written are the manual: they become the JSON schema's
//! descriptions and `docs/config.md`. Each says what the key means, its valid range, what gets worse when it is raised or
//! lowered, and an example. The `Default` implementations are the one place where defaults live, each with its reason;
//! the manual prints them from there.

mod admin;
mod admin_token;
mod bounds;
mod cache;
mod candidate;
mod class;
mod client;
mod cluster;
mod fairness;
mod feedback;
mod flash_crowd;
mod flash_crowd_candidate;
mod kernel;
mod kernel_tiers;
mod link;
mod listen;
mod process;
mod replication;
mod router;
mod sentry;
mod service;
mod upstream;

pub use admin::*;
pub use admin_token::*;
pub use bounds::*;
pub use cache::*;
pub use candidate::*;
pub use class::*;
pub use client::*;
pub use cluster::*;
pub use fairness::*;
pub use feedback::*;
pub use flash_crowd::*;
pub use flash_crowd_candidate::*;
pub use kernel::*;
pub use kernel_tiers::*;
pub use link::*;
pub use listen::*;
pub use process::*;
pub use replication::*;
pub use router::*;
pub use sentry::*;
pub use service::*;
pub use upstream::*;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::overrides::Overrides;

/// Flashweir's configuration file is TOML. Every section and every key is optional except one upstream, which
/// may also be given as `--upstream URL`, or in a `[[service]]`. Flags win over the file. Unknown keys are errors. Durations are
/// written as `"500ms"`, `"2s"`, `"5m"` or `"1h"`, sizes as `"512B"`, `"16KiB"` or `"1MiB"`. File names are
/// relative to the configuration file. SIGHUP reloads the file; a wrong file is refused with one message and
/// the old configuration stays. Listen addresses, switching TLS on or off, the admin address, the number of
/// workers, addresses that redirect and the interfaces guarded in the kernel change only at a restart.
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
    /// A service with its own hosts.
    #[serde(deserialize_with = "service::services")]
    pub service: Vec<ServiceFile>,
    /// Identity of clients, and the maximum that one of them may hold.
    pub client: ClientFile,
    /// Bounds and timeouts of the gateway itself. A full bound answers; it never hangs.
    pub bounds: BoundsFile,
    /// Detection of flash crowds and the ceiling on admission (NEWS).
    pub flash_crowd: FlashCrowdFile,
    /// Shares among clients by what they have in common.
    pub fairness: FairnessFile,
    /// Overload feedback between nodes.
    pub feedback: FeedbackFile,
    /// Several gateways before the same services.
    pub cluster: ClusterFile,
    /// Responses kept in memory and given to others, as far as HTTP allows.
    pub cache: CacheFile,
    /// Hot documents on several servers.
    pub replication: ReplicationFile,
    /// Refusing new connections in the kernel.
    pub kernel: KernelFile,
    /// Fair shares of a link.
    pub link: LinkFile,
    /// The listener for health, metrics, status and explanations.
    pub admin: AdminFile,
    /// State that is kept across restarts.
    pub state: StateFile,
    /// This gateway as a whole.
    pub gateway: GatewayFile,
    /// Messages on standard error.
    pub log: LogFile,
}

/// The whole configuration, checked. Plain data: cloning and comparing are cheap, nothing is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Listening addresses for clients.
    pub listen: Listen,
    /// The services that are protected, at least one: first the one for every host that no other has, if there is one.
    pub services: Vec<Service>,
    /// Identity of clients, and the maximum that one of them may hold.
    pub client: Client,
    /// Bounds and timeouts of the gateway itself.
    pub bounds: Bounds,
    /// The detector and its ceiling.
    pub flash_crowd: FlashCrowd,
    /// Another detector and its ceiling, evaluated beside them; never off, always in shadow.
    pub flash_crowd_candidate: Option<FlashCrowd>,
    /// Shares among clients by what they have in common.
    pub fairness: Arc<Fairness>,
    /// Overload feedback between nodes.
    pub feedback: Arc<Feedback>,
    /// Several gateways before the same services.
    pub cluster: Cluster,
    /// Settings of the cache.
    pub cache: Cache,
    /// Role of this gateway in a cluster of replicas.
    pub replication: Replication,
    /// Settings of the gate in the kernel, before the TCP stack.
    pub kernel: Kernel,
    /// The admin listener.
    pub admin: Admin,
    /// State that is kept across restarts.
    pub state: State,
    /// This gateway as a whole.
    pub gateway: Gateway,
    /// Messages on standard error.
    pub log: Log,
}

impl Config {
    pub(crate) fn from_file(
        mut file: File,
        directory: &Path,
        overrides: &Overrides,
    ) -> Result<Self, Problem> {
        let leaves_rest = leaves_other_hosts(&file, overrides)?;
        apply(&mut file, overrides)?;
        let listen = Listen::check(file.listen, directory)?;
        let bounds = Bounds::check(&file.bounds)?;
        let gateway = Gateway::check(file.gateway)?;
        let first = Written {
            upstream: file.upstream,
            sentry: file.sentry,
            class: file.class,
            candidate: file.candidate,
        };
        let first = (!leaves_rest).then_some(first);
        let flash_crowd = FlashCrowd::check(&file.flash_crowd)?;
        let mut services = Service::check_all(&gateway.name, first, file.service, directory, &listen)?;
        let client = Client::check(&file.client, &bounds)?;
        let admin = Admin::check(&file.admin, directory, &listen)?;
        let cache = Cache::check(&file.cache)?;
        let replication = Replication::check(file.replication, &cache, &mut services)?;
        // Of a file that a router reads as well; a gateway divides no link.
        Link::check(&file.link)?;
        let config = Self {
            feedback: Arc::new(Feedback::check(file.feedback, directory, &services, &listen)?),
            cluster: Cluster::check(file.cluster, directory, overrides, &listen, admin.address)?,
            fairness: Arc::new(Fairness::check(file.fairness, directory)?),
            services,
            client,
            flash_crowd_candidate: FlashCrowd::check_candidate(&file.flash_crowd, &flash_crowd)?,
            flash_crowd,
            cache,
            replication,
            kernel: Kernel::check(&file.kernel, file.flash_crowd.mode, overrides)?,
            admin,
            state: State::check(file.state, directory, overrides, &listen.first_port())?,
            gateway,
            log: Log::check(file.log, directory)?,
            listen,
            bounds,
        };
        Ok(config)
    }
}

/// Puts the flags in place of what was written, so that both go through the same checks.
fn apply(file: &mut File, overrides: &Overrides) -> Result<(), Problem> {
    file.listen.apply(overrides);
    file.upstream.apply(overrides);
    file.sentry.apply(overrides);
    file.service.iter_mut().for_each(|service| service.sentry.apply(overrides));
    file.flash_crowd.apply(overrides)?;
    file.kernel.apply(overrides)?;
    file.link.apply(overrides)?;
    file.admin.apply(overrides);
    file.cluster.apply(overrides);
    file.gateway.apply(overrides);
    file.replication.apply(&mut file.cache, overrides);
    file.log.apply(overrides)
}
