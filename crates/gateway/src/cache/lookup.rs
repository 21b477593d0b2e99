//! A request's first question: may the cache answer it, and does this worker's store have the answer?

use super::worker::WorkerCache;
use crate::current::CurrentConfig;
use flashweir_cache::{FlightGroup, Key, Mark, RequestPart, State, Stored, unknown_fields};
use flashweir_classify::Classified;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_http::fields::{ClientScheme, Hop};
use flashweir_http1::head::{FieldsView, KnownField, RequestView};
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// The answer to that question.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The cache has nothing to do with it.
    Bypass,
    /// It is answered with this.
    Fresh(Arc<Stored>),
    /// It is answered with this, which is to be fetched again.
    Stale(Arc<Stored>, Box<Miss>),
    /// This worker has no answer.
    Missed(Box<Miss>),
}

/// A request that the cache could answer and has no response for.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    /// Roles that the request may take in the cache.
    pub(crate) part: RequestPart,
    /// The key's hash.
    pub(crate) hash: u64,
    /// Its [`unknown_fields`].
    unknown_fields: u64,
    is_https: bool,
    host: Box<[u8]>,
    target: Box<[u8]>,
    /// A number for the service's origin.
    pub(crate) service: u64,
    /// The grace of its class.
    pub(crate) grace: Duration,
}

impl Miss {
    pub(crate) fn key(&self) -> Key<'_> {
        Key { is_https: self.is_https, host: &self.host, target: &self.target }
    }

    /// Returns whether a stored response may stand in for a refusal: within the class's grace, and, where
    /// HTTP does not let it be reused at all, for a request without a cookie only.
    pub(crate) fn may_use(&self, stored: &Stored, now: Instant) -> bool {
        stored.is_within(self.grace, now) && (stored.is_reusable() || !self.part.has_cookie)
    }

    /// Returns whether its own response is to be kept for the grace of its class.
    pub(crate) fn keeps_copy(&self) -> bool {
        let Self { part, grace, .. } = self;
        !grace.is_zero() && part.may_lead && !part.has_cookie && !part.has_unknown_fields
    }

    /// The requests with which it shares a flight.
    pub(crate) fn group(&self, class: u8) -> FlightGroup {
        FlightGroup { class, fields: self.unknown_fields }
    }

    /// The key under which it is remembered whether waiting is of use: that of its document, and where it has
    /// unknown fields of those, too, so that no such request makes others go to the origin.
    pub(crate) fn mark_key(&self) -> u64 {
        self.hash ^ self.unknown_fields
    }

    /// Memory of its document, or of its requests with these fields.
    pub(crate) fn mark(&self, cache: &WorkerCache, now: Instant) -> Option<Mark> {
        let of_all = cache.mark(now, self.hash);
        if of_all == Some(Mark::Alone) || self.unknown_fields == 0 {
            return of_all;
        }
        cache.mark(now, self.mark_key()).or(of_all)
    }

    /// Returns whether its response may take the place of this one.
    pub(crate) fn may_renew<'a>(
        &self,
        stored: &Stored,
        current: &CurrentConfig,
        request: impl Into<FieldsView<'a>>,
    ) -> bool {
        !self.part.has_unknown_fields
            || stored.may_be_renewed_by(request, &current.live.config.cache.request_fields)
    }
}

/// The same, borrowed from the request: a hit allocates nothing here.
struct Question<'a> {
    part: RequestPart,
    fields: FieldsView<'a>,
    harmless: &'a [HeaderName],
    hasher: &'a Hasher64,
    hash: u64,
    key: Key<'a>,
    service: u64,
    grace: Duration,
}

impl Question<'_> {
    fn keep(&self) -> Box<Miss> {
        let Self { part, fields, harmless, hasher, hash, key, service, grace } = *self;
        let Key { is_https, host, target } = key;
        let unknown_fields =
            if part.has_unknown_fields { unknown_fields(fields, harmless, hasher) } else { 0 };
        let (host, target) = (host.into(), target.into());
        Box::new(Miss { part, hash, unknown_fields, is_https, host, target, service, grace })
    }
}

/// Looks a request up. Without an allocation where this worker has a fresh answer, or the cache is not in use
/// for the host.
pub(crate) fn look_up<'a>(
    cache: &WorkerCache,
    current: &CurrentConfig,
    classified: &Classified,
    hop: &Hop,
    (head, has_body): (impl Into<RequestView<'a>>, bool),
    now: Instant,
) -> Lookup {
    if !cache.is_in_use(classified.host_key) {
        return Lookup::Bypass;
    }
    let head = head.into();
    let Some(question) = question(cache, current, classified, hop, head, has_body) else {
        return Lookup::Bypass;
    };
    let found = cache.find(question.hash, &question.key, question.service, head.fields());
    match found.map(|stored| (stored.state(now), stored)) {
        Some((State::Fresh, stored)) => Lookup::Fresh(stored),
        Some((State::WhileRevalidate, stored)) => Lookup::Stale(stored, question.keep()),
        Some((State::Stale, _)) | None => Lookup::Missed(question.keep()),
    }
}

/// The lookup of a request whose host does not use the cache at present; none where the cache could not help
/// it.
pub(crate) fn could_share<'a>(
    cache: &WorkerCache,
    current: &CurrentConfig,
    classified: &Classified,
    hop: &Hop,
    head: impl Into<RequestView<'a>>,
    has_body: bool,
) -> Option<Box<Miss>> {
    let question = question(cache, current, classified, hop, head.into(), has_body)?;
    (question.part.may_wait() && !question.part.only_if_cached).then(|| question.keep())
}

fn question<'a>(
    cache: &'a WorkerCache,
    current: &'a CurrentConfig,
    classified: &Classified,
    hop: &Hop,
    head: RequestView<'a>,
    has_body: bool,
) -> Option<Question<'a>> {
    let config = &current.live.config;
    let host = host_of(head);
    let harmless = &config.cache.request_fields;
    let part = RequestPart::of(head.method(), head.fields(), host, has_body, harmless).ok()?;
    let is_https = scheme(hop, head.fields(), host)?;
    let target = target_of(head)?;
    let key = Key { is_https, host, target };
    Some(Question {
        part,
        fields: head.fields(),
        harmless,
        hasher: cache.hasher(),
        hash: key.hash(cache.hasher()),
        key,
        service: current.service_numbers[classified.service],
        grace: config.services[classified.service].classes[usize::from(classified.class)].grace,
    })
}

/// As the origin will see it: HTTP/2 and absolute targets carry it in the target.
fn host_of(head: RequestView<'_>) -> &[u8] {
    head.target_authority().or_else(|| head.fields().get(KnownField::Host)).unwrap_or_default()
}

/// None for a target that is an authority.
fn target_of(head: RequestView<'_>) -> Option<&[u8]> {
    Some(head.path_and_query()).filter(|target| !target.is_empty())
}

/// The scheme that the client used; none where a trusted proxy passes on words about the request that the key
/// does not hold.
fn scheme(hop: &Hop, fields: FieldsView<'_>, host: &[u8]) -> Option<bool> {
    let is_tls = matches!(hop.scheme, ClientScheme::Https);
    if !hop.is_peer_trusted {
        // What it says is replaced before the origin sees it.
        return Some(is_tls);
    }
    let mut hosts = fields.all(KnownField::XForwardedHost);
    if hosts.any(|value| value != host) || fields.has(KnownField::Forwarded) {
        return None;
    }
    let mut schemes = fields.all(KnownField::XForwardedProto);
    match (schemes.next(), schemes.next()) {
        (None, _) => Some(is_tls),
        (Some(b"http"), None) => Some(false),
        (Some(b"https"), None) => Some(true),
        _ => None,
    }
}

/// RFC 9110 §9.2.1.
const SAFE_METHODS: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE"];

/// Keys that an unsafe request invalidates once it has succeeded (RFC 9111 §4.4).
#[derive(Debug)]
pub(crate) struct Invalidation {
    hash: u64,
    is_https: bool,
    host: Box<[u8]>,
    target: Box<[u8]>,
}

impl Invalidation {
    /// Of a request; none for safe methods, and where nothing is stored.
    pub(crate) fn of<'a>(
        cache: &WorkerCache,
        classified: &Classified,
        hop: &Hop,
        head: impl Into<RequestView<'a>>,
    ) -> Option<Self> {
        let head = head.into();
        if SAFE_METHODS.contains(&head.method()) || !cache.is_in_use(classified.host_key) {
            return None;
        }
        let host = host_of(head);
        let is_https = scheme(hop, head.fields(), host)?;
        let target = target_of(head)?;
        let hash = Key { is_https, host, target }.hash(cache.hasher());
        Some(Self { hash, is_https, host: host.into(), target: target.into() })
    }

    /// The origin answered without error, with these fields. Ends what is stored for the target, and for what
    /// `Location` and `Content-Location` name of the same origin.
    pub(crate) fn apply(&self, cache: &WorkerCache, answer: &HeaderMap) {
        let own = Key { is_https: self.is_https, host: &self.host, target: &self.target };
        let places = [LOCATION, CONTENT_LOCATION];
        let others = places.iter().filter_map(|name| self.target_of(answer.get(name)?));
        let others = others.map(|target| Key { target, ..own });
        let others = others.map(|key| (key.hash(cache.hasher()), key));
        cache.invalidate([(self.hash, own)].into_iter().chain(others));
    }

    /// The path and query that a place names, if it is one of the same scheme and host: another origin's
    /// documents are not this one's to end. A path that is relative to the target's is not looked for; the
    /// standard asks for none of this.
    fn target_of<'a>(&self, place: &'a HeaderValue) -> Option<&'a [u8]> {
        let place = place.as_bytes().split(|&byte| byte == b'#').next()?;
        let scheme: &[u8] = if self.is_https { b"https://" } else { b"http://" };
        let target = match place.strip_prefix(scheme) {
            Some(rest) => rest.strip_prefix(&*self.host)?,
            None => place,
        };
        (target.starts_with(b"/") && !target.starts_with(b"//")).then_some(target)
    }
}
