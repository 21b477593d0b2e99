//! Settings of the command line for this run; they win over the file.

use core::time::Duration;
use std::path::PathBuf;

/// Flags as they were typed: [`Config`](crate::Config) checks them with the same rules as the file's keys,
/// and an error then names the flag instead of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--upstream URL`, repeatable; replaces `upstream.urls` when not empty.
    pub upstream_urls: Vec<String>,
    /// `--listen ADDR`, repeatable; replaces `listen.address` when not empty.
    pub listen_addresses: Vec<String>,
    /// `--admin ADDR`; replaces `admin.address`.
    pub admin_address: Option<String>,
    /// `--cluster-service SERVICE`; replaces `cluster.kubernetes`.
    pub cluster_service: Option<String>,
    /// `--cluster-listen ADDR`; replaces `cluster.listen`.
    pub cluster_listen: Option<String>,
    /// `--cluster-keys FILE`; replaces `cluster.keys_file`. Relative to the working directory.
    pub cluster_keys: Option<PathBuf>,
    /// `--kernel`; there must be an interface then.
    pub kernel: bool,
    /// `--interface NAME`, repeatable; replaces `kernel.interface` when not empty.
    pub interfaces: Vec<String>,
    /// `--protect ADDR:PORT`, repeatable; replaces `kernel.protect` when not empty.
    pub protect: Vec<String>,
    /// `--mode MODE`; replaces `flash_crowd.mode`.
    pub mode: Option<String>,
    /// `--interval TIME`; replaces `kernel.interval`.
    pub interval: Option<Duration>,
    /// `--refusal HOW`; replaces `kernel.refusal`.
    pub refusal: Option<String>,
    /// `--pin DIR`; replaces `kernel.pin`.
    pub pin: Option<PathBuf>,
    /// `--fail-closed`; turns `kernel.fail_closed` on, never off.
    pub fail_closed: bool,
    /// `--link NAME`; replaces `link.interface`.
    pub link: Option<String>,
    /// `--link-rate RATE`; replaces `link.rate`.
    pub link_rate: Option<String>,
    /// `--link-side SIDE`; replaces `link.side`.
    pub link_side: Option<String>,
    /// `--link-flow FLOW`; replaces `link.flow`.
    pub link_flow: Option<String>,
    /// `--shadow`; turns `flash_crowd.shadow`, `kernel.shadow` and every service's `sentry.shadow` on, never
    /// off.
    pub shadow: bool,
    /// `--state-file FILE`; replaces `state.file`. Relative to the working directory.
    pub state_file: Option<PathBuf>,
    /// Directory of the state file when neither the flag nor the file names one (from the environment, read
    /// by the command line); `None` keeps no state.
    pub state_directory: Option<PathBuf>,
    /// `--workers N`; replaces `gateway.workers`.
    pub workers: Option<usize>,
    /// `--log LEVEL`; replaces `log.level`.
    pub log_level: Option<String>,
    /// The flags of `flashweir replica`: the gateway is a replica, and always caches.
    pub replica: Option<ReplicaFlags>,
}

/// Flags of `flashweir replica` beside its origin and its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaFlags {
    /// `--report-to URL`, repeatable: `replication.report_to`.
    pub report_to: Vec<String>,
    /// `--url URL`: `replication.url`.
    pub url: Option<String>,
    /// `--host HOST`: `replication.host`.
    pub host: Option<String>,
    /// `--interval TIME`: `replication.interval`.
    pub interval: Option<Duration>,
    /// `--high-watermark RATE`: `replication.high_watermark`; the low one follows.
    pub high_watermark: Option<f64>,
    /// `--memory SIZE`: `cache.memory`, bytes.
    pub memory_bytes: Option<usize>,
}

impl Overrides {
    /// The flag that replaced this key (`upstream.urls`, or `upstream.urls[0]` for one element), if any did.
    pub(crate) fn flag_for(&self, key: &str) -> Option<&'static str> {
        let (key, _) = key.split_once('[').unwrap_or((key, ""));
        let of_replica = |given: fn(&ReplicaFlags) -> bool| self.replica.as_ref().is_some_and(given);
        let replaced = [
            ("upstream.urls", "--upstream", !self.upstream_urls.is_empty()),
            ("listen.address", "--listen", !self.listen_addresses.is_empty()),
            ("admin.address", "--admin", self.admin_address.is_some()),
            ("cluster.kubernetes", "--cluster-service", self.cluster_service.is_some()),
            ("cluster.listen", "--cluster-listen", self.cluster_listen.is_some()),
            ("cluster.keys_file", "--cluster-keys", self.cluster_keys.is_some()),
            ("kernel.interface", "--interface", !self.interfaces.is_empty()),
            ("kernel.protect", "--protect", !self.protect.is_empty()),
            ("kernel.pin", "--pin", self.pin.is_some()),
            ("flash_crowd.mode", "--mode", self.mode.is_some()),
            ("kernel.interval", "--interval", self.interval.is_some()),
            ("kernel.refusal", "--refusal", self.refusal.is_some()),
            ("link.interface", "--link", self.link.is_some()),
            ("link.rate", "--link-rate", self.link_rate.is_some()),
            ("link.side", "--link-side", self.link_side.is_some()),
            ("link.flow", "--link-flow", self.link_flow.is_some()),
            ("state.file", "--state-file", self.state_file.is_some()),
            ("gateway.workers", "--workers", self.workers.is_some()),
            ("log.level", "--log", self.log_level.is_some()),
            ("replication.report_to", "--report-to", of_replica(|it| !it.report_to.is_empty())),
            ("replication.url", "--url", of_replica(|it| it.url.is_some())),
            ("replication.host", "--host", of_replica(|it| it.host.is_some())),
            ("replication.interval", "--interval", of_replica(|it| it.interval.is_some())),
            ("replication.high_watermark", "--high-watermark", of_replica(|it| it.high_watermark.is_some())),
            ("cache.memory", "--memory", of_replica(|it| it.memory_bytes.is_some())),
        ];
        replaced.into_iter().find(|(name, _, given)| *given && *name == key).map(|(_, flag, _)| flag)
    }
}
