//! Reads one HTTP/1 answer from bytes as they arrive, with the product's engine: no socket and no clock.
//!
//! The engine decides where heads and bodies end and which of them are refused; this file keeps the few facts
//! that a ledger needs, counts the body and forgets it. Pieces may be cut anywhere; only a head or a trailer
//! section that is cut is kept until the rest arrives, at most [`LOAD_HEAD_BYTES`]. Each call costs time
//! linear in its bytes and in what is kept. It allocates only for a cut head, a cut trailer section and
//! trailer fields.

use super::answer::{DECISION_FIELD, RetryAfter, flashweir_reason};
use flashweir_core::Reason;
use flashweir_core::limits::{LOAD_ANSWER_FIELDS, LOAD_HEAD_BYTES};
use flashweir_http1::body::{BodyFraming, BodyPart, BodyReader};
use flashweir_http1::connection::ResponseFault;
use flashweir_http1::head::{Fields, HeadLimits, KnownField, Method, ResponseHead, ResponseReader};
use std::cell::RefCell;
use std::mem;

const LIMITS: HeadLimits = HeadLimits { bytes_max: LOAD_HEAD_BYTES, fields_max: LOAD_ANSWER_FIELDS };

thread_local! {
    /// Reader of heads. A head is read within one call, so all connections of a thread share the table of
    /// fields: it is allocated once, and waiting connections hold none.
    static HEADS: RefCell<ResponseReader> = RefCell::new(ResponseReader::new(LIMITS));
}

/// One answer on its way.
#[derive(Debug)]
pub(super) struct AnswerReader {
    /// Beginning of a head or of trailers whose end has not arrived.
    kept: Vec<u8>,
    head: Option<Head>,
    body: BodyReader,
    body_bytes: u64,
}

/// Facts of the final head that outlive its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The connection may carry another request after this answer.
    pub(super) keeps_alive: bool,
    pub(super) reason: Option<Reason>,
    pub(super) retry_after: Option<RetryAfter>,
}

/// Result of feeding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// The answer goes on.
    More,
    /// The answer is whole.
    Whole {
        /// Nothing came after its end, which it announced itself: the connection is in order.
        in_order: bool,
    },
}

impl AnswerReader {
    pub(super) fn new() -> Self {
        Self { kept: Vec::new(), head: None, body: BodyReader::new(LIMITS), body_bytes: 0 }
    }

    /// The final head, once it has arrived.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Bytes of the body so far.
    pub(super) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Takes the next bytes that arrived; not to be called again once the answer is whole. `asks_for_body` is
    /// false for `HEAD`; it is handed in each time, since it would make each waiting request larger.
    pub(super) fn feed(&mut self, bytes: &[u8], asks_for_body: bool) -> Result<Fed, ResponseFault> {
        if self.kept.is_empty() {
            let taken = self.read(bytes, asks_for_body)?;
            self.kept.extend_from_slice(&bytes[taken..]);
        } else {
            let mut together = mem::take(&mut self.kept);
            together.extend_from_slice(bytes);
            let taken = self.read(&together, asks_for_body)?;
            if taken < together.len() {
                together.drain(..taken);
                self.kept = together;
            }
        }
        let is_whole = self.head.is_some() && self.body.is_ended();
        Ok(if is_whole { Fed::Whole { in_order: self.kept.is_empty() } } else { Fed::More })
    }

    /// The server has closed the connection; returns whether the answer is whole by that.
    pub(super) fn finish(&mut self) -> bool {
        self.head.is_some() && self.body.finish()
    }

    /// Reads up to the end of the answer or of the bytes; returns how many are done with.
    fn read(&mut self, bytes: &[u8], asks_for_body: bool) -> Result<usize, ResponseFault> {
        let mut taken = 0;
        while self.head.is_none() {
            match self.read_head(&bytes[taken..], asks_for_body)? {
                Some(length) => taken += length,
                None => return Ok(taken),
            }
        }
        // Ends: each part but the last takes at least one byte.
        loop {
            let step = self.body.read(&bytes[taken..]).map_err(ResponseFault::Body)?;
            taken += step.taken;
            match step.part {
                Some(BodyPart::Content(content)) => self.body_bytes += content.len() as u64,
                Some(BodyPart::Trailers(_)) => {}
                Some(BodyPart::End) | None => return Ok(taken),
            }
        }
    }

    /// Reads one head, interim or final; returns its length once it has arrived whole.
    fn read_head(&mut self, bytes: &[u8], asks_for_body: bool) -> Result<Option<usize>, ResponseFault> {
        HEADS.with_borrow_mut(|reader| {
            reader.restart();
            let read = reader.read(bytes).map_err(ResponseFault::Head)?;
            let Some(head) = reader.head(bytes) else { return Ok(None) };
            if !head.is_interim() {
                let framing = head.body(if asks_for_body { Method::Get } else { Method::Head });
                // No request asks to switch protocols.
                if framing == BodyFraming::Tunnel {
                    return Err(ResponseFault::UnrequestedSwitch);
                }
                self.body.begin(framing);
                self.head = Some(Head::of(head, framing));
            }
            Ok(read)
        })
    }
}

impl Head {
    fn of(head: ResponseHead<'_>, framing: BodyFraming) -> Self {
        let fields = head.fields();
        let retry_after = fields.get(KnownField::RetryAfter);
        Self {
            status: head.status(),
            keeps_alive: head.is_persistent() && framing != BodyFraming::UntilClose,
            reason: decision(fields).and_then(flashweir_reason),
            retry_after: retry_after.and_then(|value| RetryAfter::read(value, fields.get(KnownField::Date))),
        }
    }
}

/// Value of `Flashweir-Decision`.
fn decision(fields: Fields<'_>) -> Option<&[u8]> {
    // Answers of other servers have no field of Flashweir's: their names need not be compared.
    if !fields.present().contains(KnownField::Flashweir) {
        return None;
    }
    let is_decision = |name: &[u8]| name.eq_ignore_ascii_case(DECISION_FIELD.as_bytes());
    fields.iter().find(|field| is_decision(field.name)).map(|field| field.value)
}

#[cfg(test)]
#[path = "answer_reader_tests.rs"]
mod tests;
