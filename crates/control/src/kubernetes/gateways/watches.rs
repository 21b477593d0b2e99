//! Objects that gateways watch at the API server: the EndpointSlices of their Service, which say who is one
//! of them, and the Lease, which says who leads. While the API server is gone the last state stays in use.

use crate::kubernetes::back_off::BackOff;
use crate::kubernetes::cluster::{ApiErrorText, endpoint_slices, lease_record, leases, of_service};
use crate::kubernetes::lease::LeaseRecord;
use crate::kubernetes::objects::{Port, all_endpoints};
use crate::kubernetes::watched::Watched;
use flashweir_core::Duration;
use flashweir_core::limits::GATEWAYS;
use flashweir_runtime::random_u64;
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::pin::pin;
use tokio::sync::watch;
use tracing::{info, warn};

/// The longest wait between two tries to reach the API server: gateways may be without a leader for this time
/// after it is back.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// Gateways that the Service has, ready or not; none before the first answer.
pub(super) type Members = Option<BTreeSet<SocketAddr>>;
/// Lease as the watch last saw it; none before the first answer, and none within where there is no such
/// object.
pub(super) type ObservedLease = Option<Option<LeaseRecord>>;

/// Waits between tries, as the client's watch wants them.
struct Waits(BackOff);

impl Waits {
    fn new() -> Self {
        Self(BackOff::up_to(random_u64(), LONGEST_WAIT))
    }
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0.failed())
    }
}

impl Backoff for Waits {
    fn reset(&mut self) {
        let _was_failing = self.0.succeeded();
    }
}

/// Follows the Service's EndpointSlices until the future is dropped.
pub(super) async fn follow_members(
    client: Client,
    namespace: &str,
    service: &str,
    port: &str,
    members: watch::Sender<Members>,
) {
    let slices = Api::namespaced_with(client, namespace, &endpoint_slices());
    let config = watcher::Config::default().labels(&of_service(service));
    let take = |watched: &Watched| {
        let found = all_endpoints(watched.objects().map(|slice| &slice.data), Port::of(port));
        let found: BTreeSet<SocketAddr> = found.into_iter().take(GATEWAYS).collect();
        members.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&found);
            if is_new {
                info!(service, gateways = found.len(), "gateways of the Service");
                *known = Some(found);
            }
            is_new
        });
    };
    follow(slices, config, "the gateways' EndpointSlices", take).await;
}

/// Follows one Lease until the future is dropped.
pub(super) async fn follow_lease(
    client: Client,
    namespace: &str,
    name: &str,
    observed_lease: watch::Sender<ObservedLease>,
) {
    let api = Api::namespaced_with(client, namespace, &leases());
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let take = |watched: &Watched| {
        let found = Some(watched.objects().next().map(lease_record));
        observed_lease.send_if_modified(|known| std::mem::replace(known, found.clone()) != found);
    };
    follow(api, config, "the gateways' Lease", take).await;
}

/// Hands over all that is known, whenever that is whole.
async fn follow(
    api: Api<DynamicObject>,
    config: watcher::Config,
    what: &str,
    mut take: impl FnMut(&Watched),
) {
    let mut events = pin!(watcher(api, config).backoff(Waits::new()));
    let (mut watched, mut is_heard) = (Watched::default(), true);
    // The stream has no end.
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let is_part = matches!(event, watcher::Event::Init | watcher::Event::InitApply(_));
                watched.take(event);
                if !is_heard && !is_part {
                    info!(what, "API server heard again");
                    is_heard = true;
                }
                if !is_part {
                    take(&watched);
                }
            }
            Err(error) => {
                if is_heard {
                    let error = ApiErrorText(&error);
                    warn!(what, %error, "cannot be watched; gateways go on with what they have");
                }
                is_heard = false;
            }
        }
    }
}
