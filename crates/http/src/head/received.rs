//! Heads of requests.

use super::SPANS_BYTES_MAX;
use crate::head_types::request_of;
use bytes::Bytes;
use flashweir_http1::body::BodyFraming;
use flashweir_http1::head::{
    FieldSet, FieldsView, HeadLimits, KnownField, RequestHead, RequestReader, RequestSpans, RequestView,
    TargetForm, elements,
};
use flashweir_http1::write::{ConnectionField, FramingField, OutgoingRequest, write_request};
use http::request::Parts;
use http::{Method, Request, Version};

/// Head of a request. Boxed, for a request is moved often.
#[derive(Debug)]
pub enum ReceivedHead {
    /// Places in its bytes, with its target in origin-form.
    Spans(Box<SpanHead>),
    /// The types of the crate `http`.
    Parts(Box<Parts>),
}

/// Head of a request as places in its bytes.
#[derive(Debug, Default)]
pub struct SpanHead {
    bytes: Bytes,
    spans: RequestSpans,
    /// Field lines that this hop adds; empty until the head is made fit to be sent.
    lines: Bytes,
}

/// Fields that this hop says in place of the client.
const REPLACED: FieldSet = FieldSet::of(&[
    KnownField::Forwarded,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
]);

impl ReceivedHead {
    /// A head that was read from these bytes; none if the types cannot hold it and it cannot stay spans.
    pub(crate) fn new(bytes: Bytes, spans: RequestSpans) -> Option<Self> {
        let head = spans.over(&bytes);
        if head.target_form() == TargetForm::Origin && bytes.len() <= SPANS_BYTES_MAX {
            return Some(Self::Spans(Box::new(SpanHead { bytes, spans, lines: Bytes::new() })));
        }
        Some(request_of(&head, &bytes)?.into_parts().0.into())
    }

    /// View that decisions are made on.
    #[must_use]
    #[inline]
    pub fn view(&self) -> RequestView<'_> {
        match self {
            Self::Spans(head) => head.as_head().into(),
            Self::Parts(parts) => (&**parts).into(),
        }
    }

    /// View of its fields.
    #[must_use]
    #[inline]
    pub fn fields(&self) -> FieldsView<'_> {
        self.view().fields()
    }

    /// Method of the request.
    #[must_use]
    pub fn method(&self) -> Method {
        match self {
            Self::Spans(head) => Method::from_bytes(head.as_head().method_name()).unwrap_or_default(),
            Self::Parts(parts) => parts.method.clone(),
        }
    }

    /// Version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        match self {
            Self::Spans(head) => crate::head_types::version_of(head.as_head().version()),
            Self::Parts(parts) => parts.version,
        }
    }

    /// The head with the types of the crate `http`, if it is kept so.
    #[must_use]
    pub fn as_parts(&self) -> Option<&Parts> {
        match self {
            Self::Spans(_) => None,
            Self::Parts(parts) => Some(parts),
        }
    }

    /// The head to be changed. Cost: some 3,000 instructions the first time.
    pub fn parts_mut(&mut self) -> &mut Parts {
        if let Self::Spans(head) = self {
            *self = head.to_parts().into();
        }
        match self {
            Self::Parts(parts) => parts,
            Self::Spans(_) => unreachable!("it was changed above"),
        }
    }

    /// A copy with the types of the crate `http`.
    #[must_use]
    pub fn to_parts(&self) -> Parts {
        match self {
            Self::Spans(head) => head.to_parts(),
            Self::Parts(parts) => (**parts).clone(),
        }
    }

    /// The head with the types of the crate `http`.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        match self {
            Self::Spans(head) => head.to_parts(),
            Self::Parts(parts) => *parts,
        }
    }
}

impl Default for ReceivedHead {
    /// An empty head, in the place of one that has gone on.
    fn default() -> Self {
        Self::Spans(Box::default())
    }
}

impl From<Parts> for ReceivedHead {
    fn from(parts: Parts) -> Self {
        Self::Parts(Box::new(parts))
    }
}

impl<'a> From<&'a ReceivedHead> for RequestView<'a> {
    #[inline]
    fn from(head: &'a ReceivedHead) -> Self {
        head.view()
    }
}

impl SpanHead {
    #[inline]
    pub(crate) fn as_head(&self) -> RequestHead<'_> {
        self.spans.over(&self.bytes)
    }

    /// The head is fit to be sent, with these lines behind its own.
    pub(crate) fn prepared(&mut self, lines: Bytes) {
        self.lines = lines;
    }

    /// Length that the head announces, or chunks.
    pub(crate) fn announced(&self) -> BodyFraming {
        let head = self.as_head();
        match (head.body(), head.content_length()) {
            (BodyFraming::None, Some(0)) => BodyFraming::Length(0),
            (framing, _) => framing,
        }
    }

    /// Writes the head as it goes to the next hop, with this framing of its body.
    pub(crate) fn write(&self, framing: FramingField, out: &mut Vec<u8>) {
        let head = self.as_head();
        let fields = head.fields();
        let takes_trailers = fields.present().contains(KnownField::Te)
            && elements(fields, KnownField::Te).any(|element| element.eq_ignore_ascii_case(b"trailers"));
        let changes = OutgoingRequest {
            framing,
            connection: if takes_trailers { ConnectionField::Trailers } else { ConnectionField::None },
            removed: REPLACED,
            default_host: b"",
            lines: &self.lines,
        };
        write_request(&head, &changes, out);
    }

    fn to_parts(&self) -> Parts {
        if self.lines.is_empty() {
            return parts_of(&self.as_head(), &self.bytes);
        }
        let mut written = Vec::with_capacity(self.bytes.len() + self.lines.len());
        self.write(self.announced().into(), &mut written);
        let limits = HeadLimits { bytes_max: written.len() + 1, fields_max: usize::MAX };
        let (mut reader, written) = (RequestReader::new(limits), Bytes::from(written));
        let head = match reader.read(&written) {
            Ok(_) => reader.head(&written),
            Err(_) => None,
        };
        parts_of(&head.expect("what is written can be read"), &written)
    }
}

fn parts_of(head: &RequestHead<'_>, bytes: &Bytes) -> Parts {
    let request: Option<Request<()>> = request_of(head, bytes);
    request.expect("the types hold all that the strict reader accepts").into_parts().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{ClientScheme, ForwardedMemo, Hop, prepare_head, prepare_next_request};
    use flashweir_core::Rng;
    use http::HeaderMap;

    fn read(text: &str) -> Option<ReceivedHead> {
        read_bytes(text.as_bytes())
    }

    fn read_bytes(text: &[u8]) -> Option<ReceivedHead> {
        let bytes = Bytes::copy_from_slice(text);
        let mut reader = RequestReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
        reader.read(&bytes).ok()??;
        ReceivedHead::new(bytes, reader.take()?)
    }

    fn of_sorted(fields: &HeaderMap) -> Vec<(String, Vec<u8>)> {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        let mut fields: Vec<_> = fields.collect();
        fields.sort();
        fields
    }

    const HOP: Hop = Hop {
        peer: std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
        is_peer_trusted: false,
        scheme: ClientScheme::Http,
    };

    /// A client may send any byte: no head that is read makes a panic of its conversion.
    #[test]
    fn the_types_hold_each_byte_that_the_reader_accepts() {
        let mut held = 0;
        for byte in 0..=255u8 {
            let sign = char::from(byte);
            for (method, target, line) in [
                (format!("G{sign}"), "/".to_owned(), "a: b".to_owned()),
                ("GET".to_owned(), format!("/{sign}?{sign}"), "a: b".to_owned()),
                ("GET".to_owned(), "/".to_owned(), format!("a{sign}: b")),
                ("GET".to_owned(), "/".to_owned(), format!("a: b{sign}c")),
                ("GET".to_owned(), "/".to_owned(), format!("host: {sign}")),
            ] {
                // Each sign as one byte, as ISO 8859-1 has it.
                let text = format!("{method} {target} HTTP/1.1\r\nhost: h\r\n{line}\r\n\r\n");
                let bytes: Vec<u8> =
                    text.replace("host: h\r\nhost", "host").chars().map(|sign| sign as u8).collect();
                let Some(mut head) = read_bytes(&bytes) else { continue };
                held += 1;
                let _ = head.to_parts();
                if prepare_head(&mut head, &HOP, &ForwardedMemo::default()).is_ok() {
                    assert!(head.into_parts().headers.contains_key("via"), "{text}");
                }
            }
        }
        assert!(held > 500, "{held}");
    }

    /// A head that stays spans goes to the next hop as one with the types does.
    #[test]
    fn both_kinds_of_head_are_prepared_alike() {
        let lines = [
            "Host: shop.example",
            "host: shop.example:8080",
            "User-Agent: Mozilla/5.0",
            "Connection: keep-alive",
            "Connection: close, X-Secret",
            "Connection: Host, Via",
            "X-Secret:1",
            "Keep-Alive: 5",
            "TE: trailers, gzip",
            "TE: gzip",
            "Via: 1.0 before",
            "Forwarded: for=6.6.6.6",
            "X-Forwarded-For: 6.6.6.6",
            "X_Forwarded_For: 6.6.6.6",
            "X-Forwarded-Host: evil",
            "X-Forwarded-Proto: https",
            "Flashweir-Decision: x",
            "flashweir_sender: x",
            "Proxy: x",
            "Proxy-Authorization: x",
            "Cookie: a=1",
            "Cookie: b=2",
            "Accept:   */*  ",
            "Content-Length: 0",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            "Max-Forwards: 3",
            "Upgrade: websocket",
            "Expect: 100-continue",
            "X-\u{e4}: \u{e4}",
            "Empty:",
        ];
        let methods = ["GET", "POST", "OPTIONS", "HEAD", "PURGE"];
        let (mut rng, mut spans) = (Rng::new(7), 0);
        let mut choose = |bound: usize| rng.below(bound as u64) as usize;
        for _ in 0..20_000 {
            let target = ["/", "/a?b=c", "/%41//", "http://other.example/x", "*"][choose(5)];
            let version = ["1.1", "1.1", "1.0"][choose(3)];
            let mut text = format!("{} {target} HTTP/{version}\r\n", methods[choose(5)]);
            for _ in 0..choose(9) {
                text += lines[choose(lines.len())];
                text += "\r\n";
            }
            text += "\r\n";
            let (Some(mut one), Some(mut other)) = (read(&text), read(&text)) else { continue };
            let memo = ForwardedMemo::default();
            let prepared = prepare_head(&mut one, &HOP, &memo);
            let expected = prepare_next_request(other.parts_mut(), &HOP, &memo);
            assert_eq!(prepared, expected, "{text}");
            spans += usize::from(one.as_parts().is_none());
            if expected.is_err() {
                continue;
            }
            let (one, mut other) = (one.into_parts(), other.into_parts());
            // Codings are said by the hop that sends, as the body has them.
            other.headers.remove("transfer-encoding");
            let mut one_fields = one.headers.clone();
            one_fields.remove("transfer-encoding");
            assert_eq!(of_sorted(&one_fields), of_sorted(&other.headers), "{text}");
            assert_eq!((one.method, one.uri), (other.method, other.uri), "{text}");
        }
        assert!(spans > 1_000, "{spans} stayed spans");
    }

    #[test]
    fn the_first_of_two_requests_of_a_connection_does_not_speak_for_the_second() {
        let memo = ForwardedMemo::default();
        let fields = |text: &str| {
            let mut head = read(text).expect("a good head");
            prepare_head(&mut head, &HOP, &memo).expect("fit");
            assert!(head.as_parts().is_none());
            head.into_parts().headers
        };
        let one = fields("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let other = fields("GET / HTTP/1.0\r\nHost: b\r\n\r\n");
        assert_eq!(one["x-forwarded-host"], "a");
        assert_eq!(one["via"], "1.1 flashweir");
        assert_eq!(other["x-forwarded-host"], "b");
        assert_eq!(other["via"], "1.0 flashweir");
        assert_eq!(other["forwarded"], "for=192.0.2.7;host=b;proto=http");
    }
}
