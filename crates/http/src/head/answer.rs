//! Heads of responses, and a response with its body.

use super::{OwnHead, SPANS_BYTES_MAX};
use crate::fields::{ResponseError, prepare_response};
use crate::head_types::response_of;
use crate::pipe::{PipeSource, PollPipe};
use bytes::Bytes;
use flashweir_http1::connection::ResponseStart;
use flashweir_http1::head::{FieldSet, FieldsView, KnownField, ResponseHead, ResponseSpans, Version};
use flashweir_http1::write::{OutgoingResponse, write_field, write_response};
use http::response::Parts;
use http::{HeaderValue, Response, StatusCode};

/// Head of a response.
#[derive(Debug)]
pub enum AnswerHead {
    /// Places in its bytes. Boxed, for an answer is moved often.
    Spans(Box<SpanAnswer>),
    /// Lines of the gateway's own.
    Own(OwnHead),
    /// The types of the crate `http`.
    Parts(Parts),
}

/// Head of a response as places in its bytes.
#[derive(Debug)]
pub struct SpanAnswer {
    bytes: Bytes,
    spans: ResponseSpans,
    status: StatusCode,
    /// The head is fit to be sent back.
    is_prepared: bool,
}

/// Response whose head may be spans.
#[derive(Debug)]
pub struct Answer<B> {
    /// Its head.
    pub head: AnswerHead,
    /// Its body.
    pub body: B,
    /// Gives the body in pipes, where it offers them.
    pub(crate) poll_pipe: Option<PollPipe<B>>,
}

/// Result of a service.
pub trait IntoAnswer {
    /// Body of the response.
    type Body;

    /// The response.
    fn into_answer(self) -> Answer<Self::Body>;
}

impl<B> IntoAnswer for Answer<B> {
    type Body = B;

    fn into_answer(self) -> Self {
        self
    }
}

impl<B> IntoAnswer for Response<B> {
    type Body = B;

    fn into_answer(self) -> Answer<B> {
        self.into()
    }
}

impl<B> Answer<B> {
    /// A response of this head and body.
    pub fn new(head: AnswerHead, body: B) -> Self {
        Self { head, body, poll_pipe: None }
    }

    /// The same; the body is asked for pipes where its client's connection takes them.
    #[must_use]
    pub fn in_pipes(self) -> Self
    where
        B: PipeSource,
    {
        Self { poll_pipe: Some(B::poll_pipe), ..self }
    }

    /// Returns whether its body is asked for pipes.
    pub fn offers_pipes(&self) -> bool {
        self.poll_pipe.is_some()
    }

    /// The same response with another body, which offers no pipes.
    pub fn map<C>(self, change: impl FnOnce(B) -> C) -> Answer<C> {
        Answer::new(self.head, change(self.body))
    }
}

impl<B> From<Response<B>> for Answer<B> {
    fn from(response: Response<B>) -> Self {
        let (parts, body) = response.into_parts();
        Self::new(AnswerHead::Parts(parts), body)
    }
}

impl<B> From<Answer<B>> for Response<B> {
    fn from(answer: Answer<B>) -> Self {
        Self::from_parts(answer.head.into_parts(), answer.body)
    }
}

impl AnswerHead {
    /// A head that was read from these bytes; none if the types cannot hold it and it cannot stay spans.
    pub(crate) fn new(bytes: Bytes, spans: ResponseSpans) -> Option<Self> {
        let head = spans.over(&bytes);
        if bytes.len() > SPANS_BYTES_MAX {
            return Some(Self::Parts(response_of(&head, &bytes)?.into_parts().0));
        }
        let status = StatusCode::from_u16(head.status()).ok()?;
        Some(Self::Spans(Box::new(SpanAnswer { bytes, spans, status, is_prepared: false })))
    }

    /// Makes a received head fit to be sent back: see [`prepare_response`].
    ///
    /// # Errors
    /// [`ResponseError`] where that cannot be done without guessing.
    pub fn prepare(&mut self) -> Result<(), ResponseError> {
        match self {
            Self::Spans(head) if head.is_plain() => {
                head.is_prepared = true;
                Ok(())
            }
            Self::Spans(_) | Self::Own(_) | Self::Parts(_) => prepare_response(self.parts_mut()),
        }
    }

    /// Status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Spans(head) => head.status,
            Self::Own(head) => head.status(),
            Self::Parts(parts) => parts.status,
        }
    }

    /// View of its fields.
    #[must_use]
    #[inline]
    pub fn fields(&mut self) -> FieldsView<'_> {
        match self {
            Self::Spans(head) => head.as_head().fields().into(),
            Self::Own(_) | Self::Parts(_) => (&self.parts_mut().headers).into(),
        }
    }

    /// The head to be changed. Cost: some 2,500 instructions the first time.
    pub fn parts_mut(&mut self) -> &mut Parts {
        match self {
            Self::Spans(head) => *self = Self::Parts(head.to_parts()),
            Self::Own(head) => *self = Self::Parts(head.to_parts()),
            Self::Parts(_) => {}
        }
        match self {
            Self::Parts(parts) => parts,
            Self::Spans(_) | Self::Own(_) => unreachable!("it was changed above"),
        }
    }

    /// The head with the types of the crate `http`.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        match self {
            Self::Spans(head) => head.to_parts(),
            Self::Own(head) => head.to_parts(),
            Self::Parts(parts) => parts,
        }
    }
}

impl From<Parts> for AnswerHead {
    fn from(parts: Parts) -> Self {
        Self::Parts(parts)
    }
}

impl SpanAnswer {
    #[inline]
    pub(crate) fn as_head(&self) -> ResponseHead<'_> {
        self.spans.over(&self.bytes)
    }

    /// Returns whether the head is only copied. Those that name protocols are not.
    fn is_plain(&self) -> bool {
        !matches!(self.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED)
            && !self.status.is_informational()
    }

    /// Writes the head as it goes back to the client; `date` is said where the response says none.
    pub(crate) fn write(&self, start: &ResponseStart, date: impl FnOnce() -> HeaderValue, out: &mut Vec<u8>) {
        let head = self.as_head();
        let via = via_of(head.version());
        let mut changes = OutgoingResponse {
            framing: start.framing,
            connection: start.connection,
            removed: FieldSet::EMPTY,
            lines: via,
        };
        if head.fields().present().contains(KnownField::Date) {
            return write_response(&head, &changes, out);
        }
        let mut lines = via.to_vec();
        write_field(&mut lines, b"date", date().as_bytes());
        changes.lines = &lines;
        write_response(&head, &changes, out);
    }

    fn to_parts(&self) -> Parts {
        let response = response_of(&self.as_head(), &self.bytes);
        let (mut parts, ()) =
            response.expect("the types hold all that the strict reader accepts").into_parts();
        if self.is_prepared {
            prepare_response(&mut parts).expect("the strict reader refuses what is unfit");
        }
        parts
    }
}

const fn via_of(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"via: 1.0 flashweir\r\n",
        Version::Http11 => b"via: 1.1 flashweir\r\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;
    use flashweir_http1::head::{HeadLimits, ResponseReader};
    use flashweir_http1::write::{ConnectionField, FramingField};

    const LIMITS: HeadLimits = HeadLimits { bytes_max: 16_384, fields_max: 100 };

    fn read(text: &[u8]) -> Option<AnswerHead> {
        let bytes = Bytes::copy_from_slice(text);
        let mut reader = ResponseReader::new(LIMITS);
        reader.read(&bytes).ok()??;
        AnswerHead::new(bytes, reader.take()?)
    }

    fn sorted(parts: &Parts) -> Vec<(String, Vec<u8>)> {
        let fields = parts.headers.iter();
        let fields = fields.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        let mut fields: Vec<_> = fields.collect();
        fields.sort();
        fields
    }

    /// A server may send any byte: no head that is read makes a panic of its conversion.
    #[test]
    fn the_types_hold_each_byte_that_the_reader_accepts() {
        let mut held = 0;
        for byte in 0..=255u8 {
            for (before, after) in [("a", ": b"), ("a: b", "c"), ("a: ", ""), ("content-type: b", "")] {
                let text = [b"HTTP/1.1 200 O", before.as_bytes(), &[byte], after.as_bytes()];
                let [start, before, byte, after] = text;
                let line = [start, b"K\r\n", before, byte, after, b"\r\n\r\n"].concat();
                let reason = [start, byte, b"\r\na: b\r\n\r\n"].concat();
                for text in [line, reason] {
                    let Some(mut head) = read(&text) else { continue };
                    if head.prepare().is_ok() {
                        held += 1;
                        assert!(head.into_parts().headers.contains_key("via"));
                    }
                    let _ = read(&text).expect("the same").into_parts();
                }
            }
        }
        assert!(held > 500, "{held}");
    }

    /// A head that stays spans goes back to the client as one with the types does.
    #[test]
    fn both_kinds_of_head_are_prepared_alike() {
        let lines = [
            "Content-Type: text/html",
            "Content-Length: 5",
            "Content-Length: 5, 5",
            "Transfer-Encoding: chunked",
            "Connection: keep-alive",
            "Connection: close, X-Secret",
            "Connection: Content-Type, Via",
            "X-Secret:1",
            "Keep-Alive: 5",
            "Proxy-Authenticate: x",
            "TE: x",
            "Trailer: x",
            "Upgrade: h2c",
            "Via: 1.0 before",
            "X_Forwarded_For: 6.6.6.6",
            "content_length: 7",
            "Flashweir-Decision: x",
            "flashweir_decision: x",
            "Set-Cookie: a=1",
            "Set-Cookie: b=2",
            "Server:   x  ",
            "Date: Mon, 30 Nov 2026 10:00:00 GMT",
            "X-\u{e4}: \u{e4}",
            "Empty:",
        ];
        let mut rng = Rng::new(9);
        let mut choose = |bound: usize| rng.below(bound as u64) as usize;
        let mut spans = 0;
        for _ in 0..20_000 {
            let status =
                ["200 OK", "404 Nichts da", "304 Not Modified", "426 Upgrade Required", "999"][choose(5)];
            let mut text = format!("HTTP/{} {status}\r\n", ["1.1", "1.1", "1.0"][choose(3)]);
            for _ in 0..choose(9) {
                text += lines[choose(lines.len())];
                text += "\r\n";
            }
            text += "\r\n";
            let (Some(mut one), Some(mut other)) = (read(text.as_bytes()), read(text.as_bytes())) else {
                continue;
            };
            assert_eq!(one.prepare(), prepare_response(other.parts_mut()), "{text}");
            let AnswerHead::Spans(one) = one else { continue };
            spans += 1;
            let start = ResponseStart { framing: FramingField::None, connection: ConnectionField::None };
            let mut written = Vec::new();
            one.write(&start, || HeaderValue::from_static("today"), &mut written);
            let written = read(&written).expect("what is written can be read").into_parts();
            let mut other = other.into_parts();
            // These are said by the connection, as it sends the body.
            other.headers.remove("content-length");
            other.headers.entry("date").or_insert_with(|| HeaderValue::from_static("today"));
            assert_eq!(sorted(&written), sorted(&other), "{text}");
            let as_types = one.to_parts();
            assert!(!as_types.headers.contains_key("connection"), "{text}");
            let reason = |parts: &Parts| parts.extensions.get::<hyper::ext::ReasonPhrase>().cloned();
            assert_eq!((written.status, reason(&written)), (other.status, reason(&other)), "{text}");
        }
        assert!(spans > 1_000, "{spans} stayed spans");
    }
}
