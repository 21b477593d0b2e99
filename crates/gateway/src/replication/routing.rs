//! A worker's half: where each request goes, and what is counted of documents.

use super::counts::{DocumentCounts, Sample};
use super::document::{Document, hasher, server_name, validator};
use super::hops::{HOPS_MAX, Hops};
use super::station::{policy, watermarks};
use crate::no_store::NO_STORE;
use crate::shared::Shared;
use arc_swap::{ArcSwap, Cache as Latest};
use bytes::Bytes;
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_cache::RequestPart;
use flashweir_config::{Replication, ReplicationAnswer, ReplicationRole};
use flashweir_core::{Duration, Hasher64, Instant, Rate, Rng};
use flashweir_http::head::ReceivedHead;
use flashweir_replication::{Router, RoutingPlan};
use flashweir_telemetry::{Bound, RoutedTo, WorkerMetrics};
use http::header::{CONTENT_LENGTH, HOST, LOCATION};
use http::{HeaderValue, Response, StatusCode, Uri, request, response};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Between two samples: a tenth of the second within which a crowd is to be spread.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Burst that may go to a full cluster at once, as a part (1/n) of the requests that it takes in a second.
const BURST_PARTS: f64 = 10.0;

/// One worker's part in a cluster. Never leaves its thread.
pub(crate) struct WorkerReplication {
    metrics: Arc<WorkerMetrics>,
    /// None where the gateway is in no cluster.
    node: Option<Node>,
}

struct Node {
    config: Replication,
    hasher: Hasher64,
    /// Of a distributor or redirector.
    routing: Option<RefCell<Routing>>,
    counts: RefCell<DocumentCounts>,
    /// Of a replica: how clients name it, and the site in place of that.
    own: Option<Own>,
    /// Each target without the slash at the end.
    bases: Vec<String>,
}

struct Own {
    name: Box<[u8]>,
    site: HeaderValue,
}

struct Routing {
    router: Router,
    latest: Latest<Arc<ArcSwap<RoutingPlan>>, Arc<RoutingPlan>>,
    in_force: Arc<RoutingPlan>,
    rng: Rng,
    /// Limits the requests to a full cluster.
    bucket: TokenBucket,
    workers: usize,
}

/// Route of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// On to the cache and the origin, as without replicas.
    Origin,
    /// To this target.
    Target(usize),
    /// The client goes there itself.
    Redirect(StatusCode, HeaderValue),
}

/// The target that a request is for; in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChosenTarget(pub(crate) usize);

impl ChosenTarget {
    /// Takes the target out of the extensions, and writes there how many nodes the request has passed.
    pub(crate) fn take(head: &mut ReceivedHead) -> Option<usize> {
        let ReceivedHead::Parts(parts) = head else { return None };
        Hops::pass_on(parts);
        parts.extensions.remove::<Self>().map(|Self(index)| index)
    }
}

/// A request that a replica answers, until the answer begins.
#[derive(Debug)]
pub(crate) struct DocumentUse {
    replication: Rc<WorkerReplication>,
    key: u64,
    validator: u64,
}

impl WorkerReplication {
    /// By the configuration, which only a restart changes.
    pub(crate) fn new(shared: &Shared, metrics: Arc<WorkerMetrics>, rng: Rng) -> Rc<Self> {
        let live = shared.live.load();
        let config = &live.config.replication;
        if config.role == ReplicationRole::Off {
            return Rc::new(Self { metrics, node: None });
        }
        let hasher = hasher();
        let names = config.targets.iter().map(|url| server_name(&hasher, url));
        let router = Router::with_policy(names, policy(config.rules), watermarks(config)).ok();
        let plan = &shared.replication.plan;
        let routing = router.filter(|_| config.has_targets()).map(|router| Routing {
            router,
            latest: Latest::new(plan.clone()),
            in_force: plan.load_full(),
            rng,
            bucket: TokenBucket::full(Instant::ZERO, Rate::from_per_second(1.0), 1),
            workers: shared.cache.workers,
        });
        let site = config.host.clone().or_else(|| {
            let origin = live.config.services.first().and_then(|service| service.upstream.urls.first());
            origin.and_then(Uri::authority).cloned()
        });
        let own = config.url.as_ref().and_then(Uri::authority).zip(site).and_then(|(own, site)| {
            let site = HeaderValue::from_str(site.as_str()).ok()?;
            Some(Own { name: own.as_str().to_ascii_lowercase().into_bytes().into(), site })
        });
        let bases = config.targets.iter().map(|url| url.to_string().trim_end_matches('/').to_owned());
        let node = Node {
            hasher,
            routing: routing.map(RefCell::new),
            counts: RefCell::default(),
            own,
            bases: bases.collect(),
            config: config.clone(),
        };
        Rc::new(Self { metrics, node: Some(node) })
    }

    /// Reads what the nodes before this one left in a request, and gives the request the site's host. Nothing
    /// where the gateway is in no cluster.
    ///
    /// # Errors
    /// The answer to a request that goes in a circle.
    pub(crate) fn arrive(&self, head: &mut ReceivedHead) -> Result<(), Box<Response<Bytes>>> {
        let Some(node) = &self.node else { return Ok(()) };
        let head = head.parts_mut();
        let hops = Hops::take(head);
        let is_last = node.config.role == ReplicationRole::Replica;
        if hops.0 > HOPS_MAX || (hops.0 == HOPS_MAX && !is_last) {
            self.metrics.replication.loops.increment();
            return Err(Box::new(answer_circle()));
        }
        if let Some(own) = &node.own {
            own.give_site_name(head);
        }
        // A replica is the last node: what comes back to the cluster from there goes in a circle.
        let hops = if is_last { Hops(HOPS_MAX - 1) } else { hops };
        head.extensions.insert(hops);
        Ok(())
    }

    /// Route of a classified request. Counts it for its document, whether or not it is admitted.
    pub(crate) fn route(&self, now: Instant, head: &ReceivedHead, has_body: bool) -> Route {
        let Some(node) = &self.node else { return Route::Origin };
        let (Some(routing), Some(head)) = (&node.routing, head.as_parts()) else { return Route::Origin };
        let (to, route) = self.decide(node, &mut routing.borrow_mut(), now, head, has_body);
        self.metrics.replication.routed.increment(to);
        route
    }

    fn decide(
        &self,
        node: &Node,
        routing: &mut Routing,
        now: Instant,
        head: &request::Parts,
        has_body: bool,
    ) -> (RoutedTo, Route) {
        let uncacheable = (RoutedTo::OriginUncacheable, Route::Origin);
        let Some(document) = Document::of(head) else { return uncacheable };
        let part =
            RequestPart::of(head.method.as_str().as_bytes(), &head.headers, document.host(), has_body, &[]);
        let Ok(part) = part else { return uncacheable };
        let is_proxy = node.config.answer == ReplicationAnswer::Proxy;
        // The client would not send its cookie to another host, and the origin may need it.
        if part.has_cookie && !is_proxy {
            return uncacheable;
        }
        let key = document.key(&node.hasher);
        if node.config.role == ReplicationRole::Distributor {
            let target = usize::from(routing.router.home(key));
            return node.send(is_proxy, target, head);
        }
        let counts = &mut *node.counts.borrow_mut();
        if !counts.offer(key, &document) {
            self.metrics.replication.uncounted.increment();
            self.metrics.bound_hits.increment(Bound::ReplicationCounted);
        }
        routing.follow(now);
        if routing.in_force.limit_rps().is_some() && !routing.bucket.admit(now) {
            return (RoutedTo::OriginFull, Route::Origin);
        }
        let Routing { router, in_force, rng, .. } = routing;
        let Some(target) = router.choose(now, key, in_force, rng) else {
            return (RoutedTo::OriginNoReplica, Route::Origin);
        };
        counts.sent(usize::from(target));
        node.send(is_proxy, usize::from(target), head)
    }

    /// Counts a request that a replica is about to answer.
    pub(crate) fn begin(self: &Rc<Self>, head: &ReceivedHead) -> Option<DocumentUse> {
        let node = self.node.as_ref().filter(|node| !node.config.report_to.is_empty())?;
        let head = head.as_parts()?;
        let document = Document::of(head)?;
        RequestPart::of(head.method.as_str().as_bytes(), &head.headers, document.host(), false, &[]).ok()?;
        let key = document.key(&node.hasher);
        let mut counts = node.counts.borrow_mut();
        if !counts.offer(key, &document) {
            self.metrics.replication.uncounted.increment();
            self.metrics.bound_hits.increment(Bound::ReplicationCounted);
            return None;
        }
        counts.begin(key);
        Some(DocumentUse { replication: self.clone(), key, validator: 0 })
    }

    /// Counts of documents; none if they are not counted here.
    fn counts(&self) -> Option<&RefCell<DocumentCounts>> {
        let node = self.node.as_ref()?;
        let is_counted = match node.config.role {
            ReplicationRole::Redirector => true,
            ReplicationRole::Replica => !node.config.report_to.is_empty(),
            ReplicationRole::Off | ReplicationRole::Distributor => false,
        };
        is_counted.then_some(&node.counts)
    }
}

impl Node {
    fn send(&self, is_proxy: bool, target: usize, head: &request::Parts) -> (RoutedTo, Route) {
        if is_proxy {
            return (RoutedTo::Target, Route::Target(target));
        }
        let status = match self.config.answer {
            ReplicationAnswer::Temporary => StatusCode::TEMPORARY_REDIRECT,
            ReplicationAnswer::Proxy | ReplicationAnswer::Found => StatusCode::FOUND,
        };
        let hops = head.extensions.get::<Hops>().copied().unwrap_or_default();
        let location =
            head.uri.path_and_query().and_then(|path| hops.redirect(self.bases.get(target)?, path));
        match location {
            Some(location) => (RoutedTo::Redirect, Route::Redirect(status, location)),
            None => (RoutedTo::OriginUncacheable, Route::Origin),
        }
    }
}

impl Own {
    /// A client that was redirected here asks by this replica's name; origin, key and report have the site's.
    fn give_site_name(&self, head: &mut request::Parts) {
        let is_own = |name: &[u8]| name.eq_ignore_ascii_case(&self.name);
        if head.uri.authority().is_some_and(|authority| is_own(authority.as_str().as_bytes())) {
            let mut parts = head.uri.clone().into_parts();
            parts.authority = self.site.to_str().ok().and_then(|site| site.parse().ok());
            if let Ok(uri) = Uri::from_parts(parts) {
                head.uri = uri;
            }
        }
        if head.headers.get(HOST).is_some_and(|host| is_own(host.as_bytes())) {
            head.headers.insert(HOST, self.site.clone());
        }
    }
}

impl Routing {
    /// Takes over a new plan: one relaxed load where there is none.
    fn follow(&mut self, now: Instant) {
        let latest = self.latest.load();
        if Arc::ptr_eq(latest, &self.in_force) {
            return;
        }
        let latest = latest.clone();
        self.router.follow(&self.in_force, &latest);
        if let Some(limit_rps) = latest.limit_rps() {
            let own_rps = (limit_rps / self.workers as f64).max(1.0);
            let burst = (own_rps / BURST_PARTS).max(1.0) as u64;
            self.bucket.set_rate(now, Rate::from_per_second(own_rps), burst);
        }
        self.in_force = latest;
    }
}

impl DocumentUse {
    /// The answer begins.
    pub(crate) fn answered(mut self, head: &response::Parts) {
        if head.status == StatusCode::OK {
            let hasher = self.replication.node.as_ref().map(|node| node.hasher);
            self.validator = hasher.map_or(0, |hasher| validator(&hasher, &head.headers));
        }
    }
}

impl Drop for DocumentUse {
    fn drop(&mut self) {
        if let Some(counts) = self.replication.counts() {
            counts.borrow_mut().end(self.key, self.validator);
        }
    }
}

impl fmt::Debug for WorkerReplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerReplication").field("is_on", &self.node.is_some()).finish_non_exhaustive()
    }
}

/// Hands over what was counted, for as long as the worker is there; ends at once where nothing is counted.
pub(crate) async fn sample(index: usize, replication: Rc<WorkerReplication>, samples: mpsc::Sender<Sample>) {
    while let Some(counts) = replication.counts() {
        tokio::time::sleep(SAMPLE_EVERY).await;
        let Ok(place) = samples.try_reserve() else {
            replication.metrics.bound_hits.increment(Bound::SamplesQueued);
            continue;
        };
        let sample: Option<Sample> = counts.borrow_mut().drain(index);
        if let Some(sample) = sample {
            place.send(sample);
        }
    }
}

/// The redirect to a target.
pub(crate) fn redirect(status: StatusCode, location: HeaderValue) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(LOCATION, location);
    fields.insert(CONTENT_LENGTH, 0.into());
    // The next request of this client may be for another replica.
    fields.insert(NO_STORE.0, NO_STORE.1);
    response
}

fn answer_circle() -> Response<Bytes> {
    let text = "The request went in a circle between the nodes of a cluster.\n";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    crate::upstream_error::plain(status, "replication_loop", text, &http::Method::GET)
}
