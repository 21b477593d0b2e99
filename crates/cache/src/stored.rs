//! One stored response: how old it is, whether it may be used, and the answers it gives.

use crate::conditional::{ask_whether_changed, has_it};
use crate::date;
use crate::gauge::Reservation;
use crate::judgement::{Lifetime, Received};
use crate::key::Key;
use crate::range::{Part, part};
use crate::request::may_be_left_out;
use crate::tags::tags_of;
use crate::vary::Selection;
use bytes::Bytes;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, Ordering};
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_http1::head::{FieldsView, KnownField};
use flashweir_http1::write::write_field;
use http::header::{
    ACCEPT_RANGES, AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, response};

/// A stored response. Shared by the stores of all workers, and never changed: what replaces it is another
/// one.
#[derive(Debug)]
pub struct Stored {
    key: Box<[u8]>,
    /// The service that it is from: a request of another service that has the same key does not get it.
    service: u64,
    /// The hot-spot key of its host: the cache may be in use for some hosts only.
    host_key: u64,
    status: StatusCode,
    fields: HeaderMap,
    /// The same but the length as lines, for answers that are written as such.
    lines: Box<[u8]>,
    body: Bytes,
    selection: Selection,
    tags: Box<[u64]>,
    received: Received,
    lifetime: Lifetime,
    /// HTTP lets it be used while it is fresh; otherwise only a grace does.
    is_http: bool,
    is_invalid: AtomicBool,
    bytes: usize,
    /// Gives its bytes back when the last store and the last response under way have let it go.
    _reserved: Reservation,
}

/// Permitted use of a response at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// For any request.
    Fresh,
    /// For any request, while it is fetched again.
    WhileRevalidate,
    /// Not without asking the origin, which may fail.
    Stale,
}

/// Content of the field `Cache-Status` (RFC 9211) of an answer from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStatus {
    /// Fresh in the store.
    Hit,
    /// Stale, and being fetched again.
    WhileRevalidate,
    /// Stale, because fetching it failed.
    IfError,
    /// Older than HTTP allows, instead of a refusal.
    Grace,
    /// Fetched for this request, and stored.
    Fetched,
    /// Fetched again for this request, and unchanged.
    Revalidated,
    /// Fetched for another request that came before.
    Collapsed,
}

/// Answer that is the whole of a stored 200.
#[derive(Debug)]
pub struct WholeAnswer<'a> {
    /// Length of the body that GET gets.
    pub length: u64,
    /// Field lines with their ends, `Date` among them; without a length, `Age` and `Cache-Status`.
    pub lines: &'a [u8],
    /// Value of `Age`.
    pub age_s: u64,
    /// Value of `Cache-Status`.
    pub cache_status: String,
    /// The body; empty for HEAD.
    pub body: Bytes,
}

/// `Cache-Status` (RFC 9211).
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// Fields that a 304 does not replace: they describe the bytes that are stored, and the 304 has none (RFC
/// 9111 §3.2). All others are replaced, unknown ones with `Content-` before them included.
const OF_STORED_BYTES: [HeaderName; 5] = [
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
];
/// Memory of a stored response besides its text: tables, counts and this struct, generously.
const OVERHEAD_BYTES: usize = 1_024;

/// The parts of which a [`Stored`] is made.
#[derive(Debug)]
pub struct Parts<'a> {
    /// Its key.
    pub key: Key<'a>,
    /// A number for the service whose origin gave it.
    pub service: u64,
    /// The hot-spot key of its host.
    pub host_key: u64,
    /// The request's fields as the client sent them.
    pub request: FieldsView<'a>,
    /// The response's head, fit to be passed on.
    pub head: &'a response::Parts,
    /// The whole body.
    pub body: Bytes,
    /// Arrival of the head.
    pub received: Received,
    /// For how long it may be used.
    pub lifetime: Lifetime,
    /// True if HTTP allows that; false if only a grace does.
    pub is_http: bool,
}

impl Parts<'_> {
    /// The bytes that it will count as.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fields = |fields: &HeaderMap| -> usize {
            fields.iter().map(|(name, value)| 2 * name.as_str().len() + 2 * value.len()).sum()
        };
        OVERHEAD_BYTES
            + self.body.len()
            + fields(&self.head.headers)
            + self.key.host.len()
            + self.key.target.len()
            + Selection::of(self.request, &self.head.headers).map_or(0, |selection| selection.bytes())
    }
}

impl Stored {
    /// Makes one of a response that was judged storable; none where it cannot be selected or tagged after
    /// all.
    #[must_use]
    pub fn new(parts: Parts<'_>, hasher: &Hasher64, reserved: Reservation) -> Option<Self> {
        let bytes = parts.bytes();
        let Parts { key, service, host_key, request, head, body, received, lifetime, is_http } = parts;
        let selection = Selection::of(request, &head.headers).ok()?;
        let tags = tags_of(&head.headers, hasher)?;
        let mut fields = head.headers.clone();
        // Age is counted on from what it was; times at the origin are not this answer's.
        fields.remove(AGE);
        fields.remove(SERVER_TIMING);
        fields.remove(CONTENT_LENGTH);
        if head.status != StatusCode::NO_CONTENT {
            fields.insert(CONTENT_LENGTH, body.len().into());
        }
        // RFC 9110 §6.6.1: a cache that stores a response without a date gives it one.
        fields.entry(DATE).or_insert_with(|| date::format(received.unix_s));
        let mut lines = Vec::new();
        for (name, value) in fields.iter().filter(|(name, _)| **name != CONTENT_LENGTH) {
            write_field(&mut lines, name.as_str().as_bytes(), value.as_bytes());
        }
        Some(Self {
            key: key.to_bytes(),
            service,
            host_key,
            status: head.status,
            fields,
            lines: lines.into(),
            body,
            selection,
            tags,
            received,
            lifetime,
            is_http,
            is_invalid: AtomicBool::new(false),
            bytes,
            _reserved: reserved,
        })
    }

    /// Returns whether it is the response to a request for `key` with these fields, and still to be used.
    #[must_use]
    pub fn answers<'a>(&self, key: &Key<'_>, service: u64, request: impl Into<FieldsView<'a>>) -> bool {
        !self.is_invalid() && self.selects(key, service, request)
    }

    /// The same for a request that waited for it while it was fetched: what was invalidated meanwhile is for
    /// those still.
    #[must_use]
    pub fn selects<'a>(&self, key: &Key<'_>, service: u64, request: impl Into<FieldsView<'a>>) -> bool {
        self.service == service && key.is(&self.key) && self.selection.takes(request)
    }

    /// Returns whether the response to a request with these fields may take its place: each of them by which
    /// the origin may choose its response selects this one, too. `harmless` are further fields that choose
    /// none.
    #[must_use]
    pub fn may_be_renewed_by<'a>(&self, request: impl Into<FieldsView<'a>>, harmless: &[HeaderName]) -> bool {
        let mut fields = request.into().iter();
        fields.all(|field| may_be_left_out(&field, harmless) || self.selection.has(field.name))
    }

    /// Returns whether HTTP lets it be reused at all; otherwise only a grace does.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.is_http
    }

    /// Returns whether it is a response for this key, for any client.
    #[must_use]
    pub fn is_for(&self, key: &Key<'_>) -> bool {
        key.is(&self.key)
    }

    /// Returns whether two responses are for the same requests, so that the later replaces the earlier.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        self.key == other.key && self.selection == other.selection
    }

    /// It is never used again, in every store.
    pub fn invalidate(&self) {
        // Release and Acquire: who sees it invalid sees what was done before, too.
        self.is_invalid.store(true, Ordering::Release);
    }

    /// Returns whether it was [invalidated](Self::invalidate).
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is_invalid.load(Ordering::Acquire)
    }

    /// Returns whether it bears a tag.
    #[must_use]
    pub fn has_tag(&self, tag: u64) -> bool {
        self.tags.contains(&tag)
    }

    /// The hot-spot key of its host.
    #[must_use]
    pub fn host_key(&self) -> u64 {
        self.host_key
    }

    /// The bytes that it counts as.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its body, as large as it is.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Age of the response (§4.2.3).
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        self.lifetime.initial_age + now.saturating_since(self.received.at)
    }

    /// Its permitted use now.
    #[must_use]
    pub fn state(&self, now: Instant) -> State {
        let (age, lifetime) = (self.age(now), &self.lifetime);
        if !self.is_http {
            State::Stale
        } else if age < lifetime.fresh {
            State::Fresh
        } else if age < lifetime.fresh.saturating_add(lifetime.stale_while_revalidate) {
            State::WhileRevalidate
        } else {
            State::Stale
        }
    }

    /// Returns whether it may be used where the origin fails (RFC 5861 §4).
    #[must_use]
    pub fn may_serve_error(&self, now: Instant) -> bool {
        self.is_http && self.age(now) < self.lifetime.fresh.saturating_add(self.lifetime.stale_if_error)
    }

    /// Returns whether a grace of this length still covers it: since it came, or since it ceased to be fresh.
    #[must_use]
    pub fn is_within(&self, grace: Duration, now: Instant) -> bool {
        if !self.lifetime.may_have_grace || grace.is_zero() {
            return false;
        }
        match self.is_http {
            true => self.age(now) < self.lifetime.fresh.saturating_add(grace),
            false => now.saturating_since(self.received.at) < grace,
        }
    }

    /// Time since its arrival.
    #[must_use]
    pub fn since_received(&self, now: Instant) -> Duration {
        now.saturating_since(self.received.at)
    }

    /// Turns a request into the question whether this response is still right; false where it has nothing to
    /// ask with.
    pub fn ask_whether_changed(&self, request: &mut HeaderMap) -> bool {
        self.is_http && ask_whether_changed(request, Some(&self.fields))
    }

    /// The head of this response after the origin said that nothing changed (§3.2, §4.3.4); none where what
    /// it said is about another version.
    #[must_use]
    pub fn freshened(&self, not_modified: &HeaderMap) -> Option<response::Parts> {
        if let (Some(new), Some(known)) = (not_modified.get(ETAG), self.fields.get(ETAG))
            && !crate::entity_tag::is_same_weak(new.as_bytes(), known.as_bytes())
        {
            return None;
        }
        let mut fields = self.fields.clone();
        for name in not_modified.keys().filter(|name| !OF_STORED_BYTES.contains(name)) {
            fields.remove(name);
            for value in not_modified.get_all(name) {
                fields.append(name, value.clone());
            }
        }
        if !not_modified.contains_key(DATE) {
            fields.remove(DATE);
        }
        let (mut head, ()) = Response::new(()).into_parts();
        (head.status, head.headers) = (self.status, fields);
        Some(head)
    }

    /// The answer to a request that gets the whole of a 200, as lines; none for any other, which
    /// [`answer`](Self::answer) makes.
    #[must_use]
    pub fn whole<'a>(
        &self,
        now: Instant,
        is_head: bool,
        request: impl Into<FieldsView<'a>>,
        how: CacheStatus,
    ) -> Option<WholeAnswer<'_>> {
        let request = request.into();
        let may_be_part = !is_head && request.has(KnownField::Range);
        if self.status != StatusCode::OK || may_be_part || has_it(request, &self.fields) {
            return None;
        }
        Some(WholeAnswer {
            length: self.body.len() as u64,
            lines: &self.lines,
            age_s: self.age(now).as_secs(),
            cache_status: self.cache_status(now, how),
            body: if is_head { Bytes::new() } else { self.body.clone() },
        })
    }

    /// The answer to a request: the whole, a part (206, 416), or that the client has it (304).
    #[must_use]
    pub fn answer<'a>(
        &self,
        now: Instant,
        is_head: bool,
        request: impl Into<FieldsView<'a>>,
        how: CacheStatus,
    ) -> Response<Bytes> {
        let request = request.into();
        let mut fields = self.fields.clone();
        let (mut status, mut body) = (self.status, self.body.clone());
        if status == StatusCode::OK {
            if has_it(request, &self.fields) {
                (status, body) = (StatusCode::NOT_MODIFIED, Bytes::new());
                [CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING]
                    .iter()
                    .for_each(|name| drop(fields.remove(name)));
            } else if !is_head && self.has_ranges() {
                match part(request, &self.fields, body.len()) {
                    Part::Whole => {}
                    Part::Bytes(range) => {
                        let text = format!("bytes {}-{}/{}", range.start, range.end - 1, body.len());
                        status = StatusCode::PARTIAL_CONTENT;
                        body = body.slice(range);
                        put_range(&mut fields, &text, body.len());
                    }
                    Part::None => {
                        status = StatusCode::RANGE_NOT_SATISFIABLE;
                        put_range(&mut fields, &format!("bytes */{}", body.len()), 0);
                        body = Bytes::new();
                    }
                }
            }
        }
        if is_head {
            body = Bytes::new();
        }
        fields.insert(AGE, self.age(now).as_secs().into());
        let status_text = self.cache_status(now, how);
        fields.append(CACHE_STATUS, HeaderValue::try_from(status_text).unwrap_or(UNSAID));
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        response
    }

    /// Returns whether the origin lets parts be asked for.
    fn has_ranges(&self) -> bool {
        self.fields.get(ACCEPT_RANGES).is_none_or(|units| !units.as_bytes().eq_ignore_ascii_case(b"none"))
    }

    fn cache_status(&self, now: Instant, how: CacheStatus) -> String {
        let age = self.age(now).as_secs();
        let fresh = if self.is_http { self.lifetime.fresh.as_secs() } else { 0 };
        let mut text = String::with_capacity(64);
        let (said, detail) = match how {
            CacheStatus::Hit => ("hit", ""),
            CacheStatus::WhileRevalidate => ("hit", "; detail=stale-while-revalidate"),
            CacheStatus::IfError => ("hit", "; detail=stale-if-error"),
            CacheStatus::Grace => ("hit", "; detail=grace"),
            CacheStatus::Fetched => ("fwd=uri-miss; stored", ""),
            CacheStatus::Revalidated => ("fwd=stale; fwd-status=304; stored", ""),
            CacheStatus::Collapsed => ("fwd=uri-miss; collapsed", ""),
        };
        // Writing to a string cannot fail. A lifetime fits an i64: it has at most 2³¹ seconds.
        let _ = write!(text, "flashweir; {said}; ttl={}{detail}", fresh as i64 - age as i64);
        text
    }
}

/// What stands for a `Cache-Status` that is no field value.
const UNSAID: HeaderValue = HeaderValue::from_static("flashweir");

fn put_range(fields: &mut HeaderMap, range: &str, length: usize) {
    // Numbers and ASCII words.
    HeaderValue::from_str(range).into_iter().for_each(|range| drop(fields.insert(CONTENT_RANGE, range)));
    fields.insert(CONTENT_LENGTH, length.into());
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
