//! Pods to which a gateway's requests may go: a watch of the EndpointSlices of a Service.
//!
//! The watch runs on its own thread, beside the gateway. While the API server is gone the last list stays in
//! use: the gateway finds by itself which servers answer. An empty list is not handed over either: a gateway
//! without servers answers no request, and the servers that it has are at worst as absent.

use crate::kubernetes::cluster::{self, connect, endpoint_slices, of_service};
use crate::kubernetes::objects::{Port, ready_endpoints};
use crate::kubernetes::settings::KubernetesError;
use crate::kubernetes::watched::Watched;
use flashweir_core::Duration;
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use tokio::sync::watch;
use tracing::{info, warn};

/// Changes within this time of each other are handed over together: a scaled workload changes its slices once
/// for each pod, and each hand-over costs the gateway new connections.
const GATHERED_FOR: Duration = Duration::from_millis(100);

/// A Service whose ready pods are a gateway's upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReference {
    namespace: Option<String>,
    name: String,
    port: String,
}

impl ServiceReference {
    /// From `[NAMESPACE/]NAME[:PORT]`, PORT being a port's name or number; without it the first.
    ///
    /// # Errors
    /// Describes the accepted form.
    pub fn parse(text: &str) -> Result<Self, KubernetesError> {
        let (before, port) = text.split_once(':').unwrap_or((text, ""));
        let (namespace, name) = match before.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, before),
        };
        if !is_label(name) || !namespace.is_none_or(is_label) || port.contains([':', '/']) {
            return Err(KubernetesError::Usage(format!(
                "--upstream-service is `{text}`: expected [NAMESPACE/]NAME[:PORT], as shop/web:http"
            )));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned(), port: port.to_owned() })
    }
}

/// A name as DNS labels and Kubernetes have it.
fn is_label(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(is_part)
}

/// Watches a Service from now on, on its own thread; the receiver has the URLs of its ready pods, none until
/// the API server has answered.
///
/// # Errors
/// [`KubernetesError`] when there is no client for the API server, or no thread.
pub fn watch_service(
    service: ServiceReference,
    kubeconfig: Option<PathBuf>,
) -> Result<watch::Receiver<Vec<String>>, KubernetesError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(KubernetesError::Io)?;
    let (client, own_namespace) =
        runtime.block_on(connect(kubeconfig.as_deref())).map_err(KubernetesError::Client)?;
    let (sender, receiver) = watch::channel(Vec::new());
    let namespace = service.namespace.clone().unwrap_or(own_namespace);
    let slices = Api::namespaced_with(client, &namespace, &endpoint_slices());
    let thread = std::thread::Builder::new().name("endpoint-slices".to_owned());
    // Not joined: it ends with the process, and has nothing to finish.
    thread.spawn(move || runtime.block_on(follow(slices, &service, &sender))).map_err(KubernetesError::Io)?;
    Ok(receiver)
}

async fn follow(slices: Api<DynamicObject>, service: &ServiceReference, sender: &watch::Sender<Vec<String>>) {
    let config = watcher::Config::default().labels(&of_service(&service.name));
    let mut events = pin!(watcher(slices, config).default_backoff());
    let mut known = Watched::default();
    let (mut is_heard, mut is_cut) = (true, false);
    loop {
        // A change waits for those that come with it.
        let event = match tokio::time::timeout(GATHERED_FOR, events.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(_) => {
                hand_over(&known, service, sender, &mut is_cut);
                let Some(event) = events.next().await else { return };
                event
            }
        };
        match event {
            Ok(event) => {
                if !is_heard {
                    info!(service = service.name, "API server heard again");
                }
                is_heard = true;
                known.take(event);
            }
            Err(error) => {
                if is_heard {
                    let error = cluster::ApiErrorText(&error);
                    warn!(service = service.name, %error, "EndpointSlices cannot be watched; the last ones stay in use");
                }
                is_heard = false;
            }
        }
    }
}

fn hand_over(
    known: &Watched,
    service: &ServiceReference,
    sender: &watch::Sender<Vec<String>>,
    is_cut: &mut bool,
) {
    let ready = ready_endpoints(known.objects().map(|slice| &slice.data), Port::of(&service.port));
    if ready.len() > UPSTREAM_ADDRESSES && !std::mem::replace(is_cut, true) {
        warn!(
            service = service.name,
            ready = ready.len(),
            used = UPSTREAM_ADDRESSES,
            "more pods are ready than a gateway uses"
        );
    }
    let urls: Vec<String> = ready.iter().take(UPSTREAM_ADDRESSES).map(url).collect();
    if !urls.is_empty() && *sender.borrow() != urls {
        info!(service = service.name, pods = urls.len(), "pods that are ready");
        // Without a receiver the gateway is stopping.
        let _stopping = sender.send(urls);
    }
}

fn url(address: &SocketAddr) -> String {
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_with_or_without_namespace_and_port() {
        let parsed = |text: &str| ServiceReference::parse(text).map(|it| (it.namespace, it.name, it.port));
        let of = |namespace: Option<&str>, name: &str, port: &str| {
            (namespace.map(str::to_owned), name.to_owned(), port.to_owned())
        };
        assert_eq!(parsed("web").unwrap(), of(None, "web", ""));
        assert_eq!(parsed("shop/web:http").unwrap(), of(Some("shop"), "web", "http"));
        assert_eq!(parsed("web:8080").unwrap(), of(None, "web", "8080"));
        for wrong in ["", "a/b/c", "Web", "shop/", "web:a:b", "/web"] {
            let error = parsed(wrong).unwrap_err().to_string();
            assert!(error.starts_with("--upstream-service is `"), "{wrong}: {error}");
        }
    }
}
