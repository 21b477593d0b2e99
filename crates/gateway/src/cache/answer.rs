//! The answer that a stored response gives to a request.

use super::copy_body::{CopyBody, Reader};
use super::counted_as;
use super::worker::WorkerCache;
use crate::body::Body;
use crate::client::Client;
use crate::current::CurrentConfig;
use crate::pipeline::CopyPermit;
use crate::responses::Responses;
use bytes::Bytes;
use flashweir_cache::{CACHE_STATUS, CacheStatus, Stored, WholeAnswer};
use flashweir_core::Instant;
use flashweir_http::head::{Answer, AnswerHead, OwnHead};
use flashweir_http::serve::StreamCut;
use flashweir_http1::head::FieldsView;
use flashweir_http1::write::Decimal;
use flashweir_telemetry::StatusClass;
use http::header::AGE;
use std::rc::Rc;

/// Properties of the request that an answer depends on.
pub(crate) struct Asker<'a> {
    pub(crate) responses: &'a Rc<Responses>,
    pub(crate) cache: &'a WorkerCache,
    pub(crate) current: &'a CurrentConfig,
    pub(crate) client: &'a Client,
    /// The request's fields.
    pub(crate) fields: FieldsView<'a>,
    pub(crate) is_head: bool,
    /// Its answer is written as lines: it came in HTTP/1.1.
    pub(crate) takes_lines: bool,
    pub(crate) host_key: u64,
    /// Time at which the request was received.
    pub(crate) received: Instant,
    /// Ends its stream, if it came in one.
    pub(crate) stream: Option<StreamCut>,
}

impl Asker<'_> {
    /// The answer that a stored response gives. Without a permit the request's own end has been counted
    /// already.
    pub(crate) fn answer(
        self,
        stored: &Stored,
        how: CacheStatus,
        permit: Option<CopyPermit>,
    ) -> Answer<Body> {
        let now = self.responses.now();
        let whole = match self.takes_lines {
            true => stored.whole(now, self.is_head, self.fields, how),
            false => None,
        };
        let answer = match whole {
            Some(whole) => of_lines(whole),
            None => stored.answer(now, self.is_head, self.fields, how).into(),
        };
        self.responses.metrics.cache.answers.increment(counted_as(how));
        if permit.is_some() {
            // The others are seen by the detector.
            self.cache.count_answer(self.host_key);
        }
        self.whole(answer, permit)
    }

    /// A response that is in memory.
    pub(crate) fn whole(self, answer: impl Into<Answer<Bytes>>, permit: Option<CopyPermit>) -> Answer<Body> {
        let Answer { head, body, .. } = answer.into();
        let responses = &self.responses.metrics.responses;
        let took = self.responses.now().saturating_since(self.received);
        responses.first_byte.record(took);
        responses.duration.record(took);
        responses.by_class.increment(StatusClass::of(head.status().as_u16()));
        let reader = Reader {
            responses: self.responses,
            wire: &self.client.wire,
            stream: self.stream,
            stall_timeout: self.current.live.config.bounds.write_stall_timeout,
        };
        Answer::new(head, Body::Copy { body: CopyBody::new(body, permit, reader) })
    }
}

fn of_lines(whole: WholeAnswer<'_>) -> Answer<Bytes> {
    let WholeAnswer { length, lines, age_s, cache_status, body } = whole;
    let mut head = OwnHead::copied(length, lines);
    head.put(&AGE, &[Decimal::new(age_s).as_str()]);
    head.put(&CACHE_STATUS, &[&cache_status]);
    Answer::new(AnswerHead::Own(head), body)
}
