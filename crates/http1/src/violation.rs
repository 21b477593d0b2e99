//! Reasons for which a request's framing is refused.

use core::fmt;

/// One way in which a message can be read differently by two parsers. Each is refused.
///
/// The spelling of [`as_str`](Self::as_str) is the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FramingViolation {
    /// A line ended by LF without CR.
    BareLf,
    /// A CR which no LF follows.
    BareCr,
    /// NUL, DEL or another control byte.
    ControlByte,
    /// A request line which is not `method SP target SP version`.
    RequestLine,
    /// A request target with a byte that belongs to no target.
    RequestTarget,
    /// A version other than HTTP/1.0 and HTTP/1.1.
    Version,
    /// A field line that begins with white space (RFC 9112 §5.2).
    ObsFold,
    /// White space between field name and colon (RFC 9112 §5.1).
    SpaceBeforeColon,
    /// A field line that begins with its colon.
    EmptyFieldName,
    /// A field line without colon or with a byte no name may hold, or `Content_Length` and the like.
    FieldName,
    /// A value with blanks at its ends, in HTTP/2 (RFC 9113 §8.2.1).
    PaddedValue,
    /// A Content-Length that is not 1 to 18 digits: list, sign, blank, overflow.
    ContentLength,
    /// Content-Length given more than once, equal or not.
    RepeatedContentLength,
    /// A Transfer-Encoding other than exactly `chunked`, or in HTTP/1.0.
    TransferEncoding,
    /// Transfer-Encoding given more than once.
    RepeatedTransferEncoding,
    /// Content-Length beside Transfer-Encoding.
    LengthAndTransferEncoding,
    /// HTTP/1.1 without Host (RFC 9112 §3.2), HTTP/2 without that and without `:authority`.
    MissingHost,
    /// Host given more than once.
    RepeatedHost,
    /// A Host value that is no host with perhaps a port, or empty.
    InvalidHost,
    /// A chunk-size line that is not hex digits with optional extensions, or is too long.
    ChunkSize,
    /// Chunk data not followed by CRLF.
    ChunkEnd,
    /// A malformed trailer field, or one which may not be a trailer.
    Trailer,
    /// The head exceeds its byte limit (answered 431).
    HeadTooLarge,
    /// The head exceeds its field limit (answered 431).
    TooManyFields,
    /// More HTTP/2 frames that carry no work than a connection may send (RFC 9113 §10.5; GOAWAY with
    /// ENHANCE_YOUR_CALM).
    FrameFlood,
}

impl FramingViolation {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 25] = [
        Self::BareLf,
        Self::BareCr,
        Self::ControlByte,
        Self::RequestLine,
        Self::RequestTarget,
        Self::Version,
        Self::ObsFold,
        Self::SpaceBeforeColon,
        Self::EmptyFieldName,
        Self::FieldName,
        Self::PaddedValue,
        Self::ContentLength,
        Self::RepeatedContentLength,
        Self::TransferEncoding,
        Self::RepeatedTransferEncoding,
        Self::LengthAndTransferEncoding,
        Self::MissingHost,
        Self::RepeatedHost,
        Self::InvalidHost,
        Self::ChunkSize,
        Self::ChunkEnd,
        Self::Trailer,
        Self::HeadTooLarge,
        Self::TooManyFields,
        Self::FrameFlood,
    ];

    /// The one spelling used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BareLf => "bare_lf",
            Self::BareCr => "bare_cr",
            Self::ControlByte => "control_byte",
            Self::RequestLine => "request_line",
            Self::RequestTarget => "request_target",
            Self::Version => "version",
            Self::ObsFold => "obs_fold",
            Self::SpaceBeforeColon => "space_before_colon",
            Self::EmptyFieldName => "empty_field_name",
            Self::FieldName => "field_name",
            Self::PaddedValue => "padded_value",
            Self::ContentLength => "content_length",
            Self::RepeatedContentLength => "repeated_content_length",
            Self::TransferEncoding => "transfer_encoding",
            Self::RepeatedTransferEncoding => "repeated_transfer_encoding",
            Self::LengthAndTransferEncoding => "length_and_transfer_encoding",
            Self::MissingHost => "missing_host",
            Self::RepeatedHost => "repeated_host",
            Self::InvalidHost => "invalid_host",
            Self::ChunkSize => "chunk_size",
            Self::ChunkEnd => "chunk_end",
            Self::Trailer => "trailer",
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyFields => "too_many_fields",
            Self::FrameFlood => "frame_flood",
        }
    }

    /// One line for the client that sent the message, with its line end.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::BareLf => "A line of the head ends with LF alone instead of CR LF.\n",
            Self::BareCr => "A line of the head holds a CR without LF.\n",
            Self::ControlByte => "The head holds a control byte.\n",
            Self::RequestLine => "The request line is not `method SP target SP version`.\n",
            Self::RequestTarget => {
                "The request target holds a byte that must be percent-encoded: a blank, #, <, > or a control byte anywhere, \
                 a backtick in the path, a quotation mark in the query, or bytes that are no UTF-8.\n"
            }
            Self::Version => "The version is neither HTTP/1.1 nor HTTP/1.0.\n",
            Self::ObsFold => "A field line begins with white space.\n",
            Self::SpaceBeforeColon => "A field name is followed by white space before its colon.\n",
            Self::EmptyFieldName => "A field line begins with its colon.\n",
            Self::FieldName => "A field line has no colon, or its name holds a byte that no name may hold.\n",
            Self::PaddedValue => "The value of a field begins or ends with white space.\n",
            Self::ContentLength => "Content-Length is no number of 1 to 18 digits.\n",
            Self::RepeatedContentLength => "Content-Length is given more than once.\n",
            Self::TransferEncoding => "Transfer-Encoding is not exactly `chunked`, or is used in HTTP/1.0.\n",
            Self::RepeatedTransferEncoding => "Transfer-Encoding is given more than once.\n",
            Self::LengthAndTransferEncoding => "Both Content-Length and Transfer-Encoding are given.\n",
            Self::MissingHost => "The request does not say for which host it is.\n",
            Self::RepeatedHost => "Host is given more than once.\n",
            Self::InvalidHost => "The value of Host is no name or address with perhaps a port.\n",
            Self::ChunkSize => "A chunk of the body has no valid size line.\n",
            Self::ChunkEnd => "The data of a chunk does not end with CR LF.\n",
            Self::Trailer => "A trailer field is malformed, or may not be a trailer.\n",
            Self::HeadTooLarge => "The head of the request has more bytes than are read here.\n",
            Self::TooManyFields => "The request has more fields than are read here.\n",
            Self::FrameFlood => "The connection sent too many frames that carry no work.\n",
        }
    }
}

impl fmt::Display for FramingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
