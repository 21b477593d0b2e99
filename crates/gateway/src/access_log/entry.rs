//! One request of the access log, from its head to the end of its response.

use super::line::Record;
use super::worker::WorkerLog;
use crate::current::CurrentConfig;
use flashweir_classify::Classified;
use flashweir_core::{DecisionId, Duration, Instant, Reason};
use flashweir_http::head::ReceivedHead;
use flashweir_http1::head::{KnownField, RequestView};
use http::{StatusCode, Version};
use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The status of a request whose client was gone before its answer, as nginx has it.
const CLIENT_GONE: u16 = 499;

/// A request under way; its line is written when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    log: Rc<WorkerLog>,
    received: Instant,
    since_1970: Duration,
    client: Cell<IpAddr>,
    protocol: &'static str,
    /// Method, target, host, referer and user agent, one behind the other.
    text: Box<[u8]>,
    /// Ends of these parts.
    ends: [usize; 5],
    found: OnceCell<Found>,
    refused: Cell<Option<(DecisionId, Reason)>>,
    answered: Cell<Option<Answered>>,
    is_complete: Cell<bool>,
    bytes: Cell<u64>,
}

/// Source of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerSource {
    Gateway,
    Cache,
    /// By its place in the configuration.
    Upstream(usize),
}

/// Service and class of a request.
#[derive(Debug)]
struct Found {
    current: Rc<CurrentConfig>,
    service: usize,
    class: u8,
}

/// Head of the response.
#[derive(Clone, Copy, Debug)]
struct Answered {
    after: Duration,
    status: u16,
    result: &'static str,
    upstream: Option<usize>,
}

impl Entry {
    /// A request whose head came at `received` from this peer.
    pub(crate) fn begin(log: &Rc<WorkerLog>, received: Instant, peer: IpAddr, head: &ReceivedHead) -> Self {
        let view = head.view();
        let (text, ends) = texts(view);
        Self {
            log: log.clone(),
            received,
            since_1970: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            client: Cell::new(peer),
            protocol: match head.version() {
                Version::HTTP_2 => "HTTP/2.0",
                Version::HTTP_10 => "HTTP/1.0",
                _ => "HTTP/1.1",
            },
            text,
            ends,
            found: OnceCell::new(),
            refused: Cell::default(),
            answered: Cell::default(),
            is_complete: Cell::default(),
            bytes: Cell::default(),
        }
    }

    /// Its client, where a trusted proxy names it, and its service and class.
    pub(crate) fn found(&self, client: IpAddr, current: &Rc<CurrentConfig>, classified: &Classified) {
        self.client.set(client);
        let Classified { service, class, .. } = *classified;
        // Said once for each request.
        let _set_before = self.found.set(Found { current: current.clone(), service, class });
    }

    /// It is refused.
    pub(crate) fn refused(&self, id: DecisionId, reason: Reason) {
        self.refused.set(Some((id, reason)));
    }

    /// Its response begins.
    pub(crate) fn answered(&self, status: StatusCode, source: AnswerSource) {
        let (result, upstream) = match source {
            AnswerSource::Gateway if self.refused.get().is_some() => ("refused", None),
            AnswerSource::Gateway => ("answered", None),
            AnswerSource::Cache => ("stored", None),
            AnswerSource::Upstream(index) => ("forwarded", Some(index)),
        };
        let after = self.log.clock.now().saturating_since(self.received);
        self.answered.set(Some(Answered { after, status: status.as_u16(), result, upstream }));
    }

    /// Bytes of its response were handed to the client.
    pub(crate) fn passed(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Sets whether that was all of it.
    pub(crate) fn set_complete(&self, is_complete: bool) {
        self.is_complete.set(is_complete);
    }

    fn part(&self, place: usize) -> &[u8] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[place]]
    }
}

fn texts(view: RequestView<'_>) -> (Box<[u8]>, [usize; 5]) {
    let field = |known| view.fields().get(known).unwrap_or_default();
    let host = view.fields().get(KnownField::Host).or_else(|| view.target_authority()).unwrap_or_default();
    let parts = [
        view.method(),
        view.path_and_query(),
        host,
        field(KnownField::Referer),
        field(KnownField::UserAgent),
    ];
    let text = parts.concat().into_boxed_slice();
    let mut end = 0;
    let ends = parts.map(|part| {
        end += part.len();
        end
    });
    (text, ends)
}

impl Drop for Entry {
    fn drop(&mut self) {
        let unix_s = self.since_1970.as_secs();
        let refused = self.refused.get();
        let left_out = match refused {
            None => 0,
            Some(_) => match self.log.takes_refusal(unix_s) {
                Some(left_out) => left_out,
                None => return,
            },
        };
        let total = self.log.clock.now().saturating_since(self.received);
        let found = self.found.get();
        let service = found.map(|found| &found.current.live.config.services[found.service]);
        let class = found.and_then(|found| service?.classes.get(usize::from(found.class)));
        let answered = self.answered.get();
        let upstream = answered.and_then(|answered| service?.upstream.urls.get(answered.upstream?));
        let upstream = upstream.map(ToString::to_string);
        let record = Record {
            millis: self.since_1970.subsec_millis(),
            client: self.client.get(),
            method: self.part(0),
            target: self.part(1),
            host: self.part(2),
            referer: self.part(3),
            user_agent: self.part(4),
            protocol: self.protocol,
            status: answered.map_or(CLIENT_GONE, |answered| answered.status),
            bytes: self.bytes.get(),
            service: service.map(|service| service.name.as_str()),
            class: class.map(|class| class.name.as_str()),
            result: answered.map_or("abandoned", |answered| answered.result),
            is_complete: self.is_complete.get(),
            refused,
            upstream: upstream.as_deref(),
            head_after: answered.map(|answered| answered.after),
            total,
            left_out,
        };
        self.log.add(unix_s, &record);
    }
}
