//! The configuration in force as one worker uses it.

use crate::client::Client;
use crate::feedback::{OVERLOAD, SENDER, Sender, SenderNames, TrailerQuota, spent_for};
use crate::pipeline::PipelineHost;
use crate::settings::serve_settings;
use crate::shared::{Live, Shared};
use crate::upload::{SilentOrigins, UploadBody};
use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_classify::{Classified, Classifier};
use flashweir_config::Service;
use flashweir_core::{Hasher64, Rng};
use flashweir_http::client::ClientNetwork;
use flashweir_http::fields::Hop;
use flashweir_http::head::AnswerHead;
use flashweir_http::serve::Server;
use flashweir_http::upstream::Upstreams;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::rc::Rc;
use std::sync::Arc;

/// RFC 9218.
const PRIORITY: HeaderName = HeaderName::from_static("priority");
/// Its values by rank; the last for all later ones.
static URGENCIES: [HeaderValue; 8] = [
    HeaderValue::from_static("u=0"),
    HeaderValue::from_static("u=1"),
    HeaderValue::from_static("u=2"),
    HeaderValue::from_static("u=3"),
    HeaderValue::from_static("u=4"),
    HeaderValue::from_static("u=5"),
    HeaderValue::from_static("u=6"),
    HeaderValue::from_static("u=7"),
];

/// The configuration in force; a request keeps the one it began with.
#[derive(Debug)]
pub(crate) struct CurrentConfig {
    /// The configuration in force.
    pub(crate) live: Arc<Live>,
    /// Serves connections with the configured bounds and timeouts.
    pub(crate) server: Server,
    /// Connections to each service's upstreams, in the configuration's order; kept over reloads that leave
    /// them alone.
    pub(crate) upstreams: Vec<Rc<Upstreams<UploadBody>>>,
    /// The pipeline's key of each service, in the same order.
    pub(crate) services: Vec<ServiceKey>,
    /// A number for each service and its servers, in the same order: what is stored of one is never
    /// another's.
    pub(crate) service_numbers: Vec<u64>,
    /// Services whose origins let expectations pass, in the same order.
    pub(crate) silent_origins: SilentOrigins,
    /// Finds a request's service and makes the stages' keys.
    pub(crate) classifier: Classifier,
    /// Recognises nodes in front.
    pub(crate) senders: SenderNames,
    /// Name of this gateway for upstreams that sign their messages.
    pub(crate) own_name: Option<HeaderValue>,
}

impl CurrentConfig {
    /// The configuration `live`; of the upstreams known before, those are kept that it leaves alone.
    pub(crate) fn new(
        shared: &Shared,
        live: Arc<Live>,
        services: Vec<ServiceKey>,
        before: Option<&Self>,
        rng: &Rng,
    ) -> Self {
        let upstreams = live.upstreams.iter().enumerate().map(|(index, wanted)| {
            let mut known = before.iter().flat_map(|before| &before.upstreams);
            let kept = known.find(|upstreams| Arc::ptr_eq(upstreams.shared(), wanted)).cloned();
            kept.unwrap_or_else(|| {
                let upstreams = Upstreams::new(wanted.clone(), rng.fork(index as u64));
                Rc::new(upstreams.repeating(UploadBody::copy))
            })
        });
        Self {
            server: Server::new(serve_settings(&live.config)),
            silent_origins: SilentOrigins::new(live.upstreams.len()),
            upstreams: upstreams.collect(),
            services,
            service_numbers: live.config.services.iter().map(|service| number(shared, service)).collect(),
            classifier: Classifier::new(
                shared.hasher,
                Hasher64::new(shared.url_key.0, shared.url_key.1),
                &live.config,
            ),
            senders: SenderNames::new(&live.config.feedback, shared.hasher),
            // A gateway's name fits a field.
            own_name: (!live.config.feedback.keys.is_empty())
                .then(|| HeaderValue::from_str(&live.config.gateway.name).ok())
                .flatten(),
            live,
        }
    }

    /// Returns whether requests that are sent on say more than that.
    pub(crate) fn signs(&self) -> bool {
        self.own_name.is_some() || self.live.config.feedback.sends_priority
    }

    /// Says in a request that is sent on who sends it, and how important it is here: see `[feedback]`.
    pub(crate) fn sign(&self, pipeline: &PipelineHost, classified: &Classified, fields: &mut HeaderMap) {
        if let Some(name) = &self.own_name {
            fields.insert(SENDER, name.clone());
        }
        let config = &self.live.config;
        if config.feedback.sends_priority
            && config.services[classified.service].classes.len() > 1
            && let Some(rank) = pipeline.rank(self.services[classified.service], classified.class)
        {
            fields.insert(PRIORITY, URGENCIES[usize::from(rank).min(URGENCIES.len() - 1)].clone());
        }
    }

    /// Keeps what a response of an upstream says of that upstream's overload, and of a quota that is obeyed.
    /// Its trailers may say more of the latter.
    pub(crate) fn hear_upstream(
        &self,
        pipeline: &PipelineHost,
        service: usize,
        head: &mut AnswerHead,
        upstream: usize,
    ) -> Option<TrailerQuota> {
        let key = self.services[service];
        {
            let name = OVERLOAD;
            let mut lines = head.fields().all_named(&name);
            // Of several lines it cannot be known which is the node's. What stands for them is no message.
            let field = match (lines.next(), lines.next()) {
                (Some(_), Some(_)) => Some(&b"several lines"[..]),
                (first, _) => first,
            };
            pipeline.hear_upstream(key, upstream, field);
        }
        let config = &self.live.config;
        if !(config.services[service].upstream.obeys_quota && config.feedback.is_enabled) {
            return None;
        }
        let head = head.parts_mut();
        pipeline.hear_quota(key, spent_for(Some(head.status), &head.headers));
        Some(TrailerQuota::new(key))
    }

    /// Source network of a request's connection, if new ones from there may be refused should its clients
    /// ignore `Retry-After`.
    pub(crate) fn source(
        &self,
        classified: &Classified,
        signs: &RequestSigns,
        client: &Client,
        hop: &Hop,
        sender: Sender<'_>,
    ) -> Option<ClientNetwork> {
        // Without signs no client is judged, or this one is exempt. Nodes and proxies speak for many.
        let is_judged = signs.person_key != 0
            && classified.ceiling_priority != CeilingPriority::Exempt
            && self.live.config.fairness.drops_impatient;
        let speaks_for_others = hop.is_peer_trusted || matches!(sender, Sender::Node(_));
        (is_judged && !speaks_for_others).then_some(client.source).flatten()
    }
}

/// Of a service with these servers, in this order.
fn number(shared: &Shared, service: &Service) -> u64 {
    let urls = service.upstream.urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    shared.hasher.hash(&[service.name.as_bytes(), urls.as_bytes()])
}
