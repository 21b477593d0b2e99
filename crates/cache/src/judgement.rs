//! Judgement of a response: permission to store it and to answer others with it, and its lifetime (RFC 9111
//! §3 and §4.2, RFC 5861).
//!
//! Everything must allow it; the first thing that does not is the reason that is counted. Storing is never a
//! duty, so where the standard leaves a choice the rule here stores less: no heuristic freshness (§4.2.2), no
//! partial responses (§3.3), and a response to a request with a cookie needs the word of the origin that §3.5
//! asks for with credentials (`public` or `s-maxage`).

use crate::date;
use crate::directives::{Directives, seconds};
use crate::request::{RequestPart, may_be_left_out};
use crate::tags::tags_of;
use crate::vary::{self, Selection, Unselectable};
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_http1::head::{FieldsView, KnownField};
use http::header::{AGE, DATE, EXPIRES};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Arrival of a response, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// By the clock that does not jump.
    pub at: Instant,
    /// Seconds since 1970.
    pub unix_s: u64,
}

/// A response and what its request was.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The request's part, and its fields as the client sent them.
    pub part: RequestPart,
    /// The request's fields as the client sent them.
    pub request: FieldsView<'a>,
    /// Further fields of requests that are harmless, by the configuration.
    pub harmless: &'a [HeaderName],
    /// Time at which the request was sent.
    pub sent_at: Instant,
    /// The response's status.
    pub status: StatusCode,
    /// Its fields.
    pub response: &'a HeaderMap,
    /// Arrival of its head.
    pub received: Received,
    /// Its end is marked (a length, chunks, HTTP/2): where the end of the connection is the end, half a
    /// response looks whole.
    pub is_delimited: bool,
}

/// Permitted use of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may be stored and answer others.
    Store(Lifetime),
    /// HTTP does not let it be reused without asking, but nothing in it is about one user: where the operator
    /// allows a grace, it may be used for that long instead of a refusal.
    Grace(NotStored),
    /// It is for its request alone.
    Never(NotStored),
}

/// For how long a stored response may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Its freshness lifetime (§4.2.1).
    pub fresh: Duration,
    /// Age at its arrival (§4.2.3, `corrected_initial_age`).
    pub initial_age: Duration,
    /// Behind that it may be used while it is fetched again.
    pub stale_while_revalidate: Duration,
    /// Behind that it may be used where fetching it fails.
    pub stale_if_error: Duration,
    /// A grace may be given to it.
    pub may_have_grace: bool,
}

/// Reason for which a response was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// Its request had credentials.
    Authorization,
    /// It sets a cookie, with any other fields.
    SetCookie,
    /// It says so.
    NoStore,
    /// It is for one user.
    Private,
    /// It is not to be used without asking.
    NoCache,
    /// Its status is not understood here, or not final.
    Status,
    /// Nothing says how long it is fresh, or it was not fresh when it came.
    NotFresh,
    /// `Vary` selects nothing that two requests share.
    Vary,
    /// Its request had a cookie, and the origin does not say that it is for all.
    Cookie,
    /// Its request had a field by which the origin may have chosen it.
    RequestFields,
    /// Its fields cannot be read, or not in one way.
    Doubtful,
    /// Its end is not marked, it has trailers, or it did not come whole.
    Incomplete,
    /// It is larger than a stored response may be, or comes too slowly to be waited for.
    TooLarge,
    /// It has too many tags.
    Tags,
    /// It does not fit beside what is being sent.
    NoRoom,
    /// It was purged while it was fetched.
    Purged,
}

/// Statuses whose responses are complete by themselves; 206 and 304 are not, and others mean nothing to this
/// cache (§3).
const UNDERSTOOD: [u16; 15] = [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501];

/// Applies the rules.
#[must_use]
pub fn judge(exchange: &Exchange<'_>, hasher: &Hasher64) -> Judgement {
    let directives = Directives::of_response(exchange.response);
    if let Err(why) = may_be_shared(exchange, &directives, hasher) {
        return Judgement::Never(why);
    }
    let may_have_grace = exchange.status == StatusCode::OK
        && !exchange.part.has_cookie
        && !directives.must_revalidate
        && !directives.is_general_restricted;
    let unstored = |why| if may_have_grace { Judgement::Grace(why) } else { Judgement::Never(why) };
    if directives.no_cache {
        return unstored(NotStored::NoCache);
    }
    let lifetime = Lifetime { may_have_grace, ..lifetime(&directives, exchange) };
    if !lifetime.is_fresh_on_arrival() {
        return unstored(NotStored::NotFresh);
    }
    if depends_on_cookie(&directives, exchange) {
        return Judgement::Never(NotStored::Cookie);
    }
    Judgement::Store(lifetime)
}

/// The same of a stored response that its origin has just validated (304): it answers the request that asked,
/// fresh or not (§4.3.3), so that nothing has to be sent again.
///
/// # Errors
/// Why it may not stay stored.
pub fn judge_validated(exchange: &Exchange<'_>, hasher: &Hasher64) -> Result<Lifetime, NotStored> {
    match judge(exchange, hasher) {
        Judgement::Store(lifetime) => Ok(lifetime),
        Judgement::Grace(NotStored::NotFresh) | Judgement::Never(NotStored::NotFresh) => {
            let directives = Directives::of_response(exchange.response);
            match depends_on_cookie(&directives, exchange) {
                true => Err(NotStored::Cookie),
                false => Ok(lifetime(&directives, exchange)),
            }
        }
        Judgement::Grace(why) | Judgement::Never(why) => Err(why),
    }
}

impl Lifetime {
    /// Returns whether it was fresh when it came.
    #[must_use]
    pub fn is_fresh_on_arrival(&self) -> bool {
        self.fresh > self.initial_age
    }
}

/// An origin that forgets `private` on a page that it made for one user is common enough.
fn depends_on_cookie(directives: &Directives, exchange: &Exchange<'_>) -> bool {
    exchange.part.has_cookie && !directives.public && directives.s_maxage.is_none()
}

/// Without a grace.
fn lifetime(directives: &Directives, exchange: &Exchange<'_>) -> Lifetime {
    let stale = |named: Option<Duration>| match named {
        // Revalidation is required, and `s-maxage` implies `proxy-revalidate` (§5.2.2.10).
        Some(_) if directives.must_revalidate || directives.s_maxage.is_some() => Duration::ZERO,
        named => named.unwrap_or(Duration::ZERO),
    };
    Lifetime {
        fresh: freshness(directives, exchange),
        initial_age: initial_age(exchange),
        stale_while_revalidate: stale(directives.stale_while_revalidate),
        stale_if_error: stale(directives.stale_if_error),
        may_have_grace: false,
    }
}

/// Returns whether any other client than its own may ever see it.
fn may_be_shared(
    exchange: &Exchange<'_>,
    directives: &Directives,
    hasher: &Hasher64,
) -> Result<(), NotStored> {
    let Exchange { part, request, harmless, status, response, is_delimited, .. } = *exchange;
    if request.has(KnownField::Authorization) {
        return Err(NotStored::Authorization);
    }
    // `Set-Cookie2` as well: what is set for one client is not for another.
    if response.keys().any(|name| name.as_str().starts_with("set-cookie")) {
        return Err(NotStored::SetCookie);
    }
    if directives.no_store {
        return Err(NotStored::NoStore);
    }
    if directives.private {
        return Err(NotStored::Private);
    }
    if directives.is_doubtful || has_conflict(response) {
        return Err(NotStored::Doubtful);
    }
    if part.is_head || part.has_range || !UNDERSTOOD.contains(&status.as_u16()) {
        return Err(NotStored::Status);
    }
    if !is_delimited {
        return Err(NotStored::Incomplete);
    }
    match Selection::of(request, response) {
        Ok(_) => {}
        Err(Unselectable::Vary) => return Err(NotStored::Vary),
        Err(Unselectable::Cookie) => return Err(NotStored::Cookie),
    }
    if !request.iter().all(|field| may_be_left_out(&field, harmless) || vary::names(response, field.name)) {
        return Err(NotStored::RequestFields);
    }
    tags_of(response, hasher).map(drop).ok_or(NotStored::Tags)
}

/// Fields that may be there once only and are there with different values.
fn has_conflict(response: &HeaderMap) -> bool {
    [EXPIRES, DATE].iter().any(|name| {
        let mut lines = response.get_all(name).iter();
        let first = lines.next();
        lines.any(|line| Some(line) != first)
    })
}

/// §4.2.1: `s-maxage`, `max-age`, `Expires`, the last not beside `CDN-Cache-Control` or `Surrogate-Control`;
/// no heuristic.
fn freshness(directives: &Directives, exchange: &Exchange<'_>) -> Duration {
    if let Some(lifetime) = directives.s_maxage.or(directives.max_age) {
        return lifetime;
    }
    // RFC 9213 §2.2.
    if directives.is_targeted {
        return Duration::ZERO;
    }
    // A date that cannot be read, `0` for one, is in the past (§5.3).
    let Some(expires) = exchange.response.get(EXPIRES).and_then(|value| date::parse(value.as_bytes())) else {
        return Duration::ZERO;
    };
    let date = exchange
        .response
        .get(DATE)
        .and_then(|value| date::parse(value.as_bytes()))
        .unwrap_or(exchange.received.unix_s);
    Duration::from_secs(expires.saturating_sub(date))
}

/// §4.2.3: as old as the clocks say, or as `Age` says and the response took, the larger of both.
fn initial_age(exchange: &Exchange<'_>) -> Duration {
    let Exchange { response, received, sent_at, .. } = exchange;
    let date = response.get(DATE).and_then(|value| date::parse(value.as_bytes())).unwrap_or(received.unix_s);
    let apparent = Duration::from_secs(received.unix_s.saturating_sub(date));
    let named = |value: &HeaderValue| {
        // Of a list the first member counts, and of lines the first (§5.1); what is no number is ignored.
        seconds(value.as_bytes().split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii())
    };
    let age = response.get(AGE).and_then(named).unwrap_or(Duration::ZERO);
    apparent.max(age + received.at.saturating_since(*sent_at))
}

#[cfg(test)]
#[path = "judgement_tests.rs"]
mod tests;
