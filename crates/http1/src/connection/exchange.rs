//! Facts of one exchange on the server's side that its response depends on.

use crate::head::{BodyFraming, KnownField, Method, NO_CONTENT, NOT_MODIFIED, RequestHead, Version};
use crate::write::FramingField;

/// Facts of the request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) version: Version,
    /// Waits for a 100, and no byte of its body has come.
    pub(super) expects_continue: bool,
    pub(super) wants_upgrade: bool,
}

impl Request {
    /// Before the first.
    pub(super) const NONE: Self = Self {
        method: Method::Other,
        version: Version::Http11,
        expects_continue: false,
        wants_upgrade: false,
    };

    pub(super) fn of(head: &RequestHead<'_>) -> Self {
        Self {
            method: head.method(),
            version: head.version(),
            expects_continue: head.expects_continue(),
            wants_upgrade: head.version() == Version::Http11
                && head.connection().upgrade
                && head.fields().present().contains(KnownField::Upgrade),
        }
    }
}

/// Framing of a final response: the field that says it, and the content that is sent.
pub(super) fn response_framing(
    request: &Request,
    status: u16,
    length: Option<u64>,
) -> (FramingField, BodyFraming) {
    let has_body = request.method != Method::Head && !matches!(status, NO_CONTENT | NOT_MODIFIED);
    match length {
        _ if status == NO_CONTENT => (FramingField::None, BodyFraming::None),
        Some(length) if has_body => (FramingField::Length(length), BodyFraming::Length(length)),
        Some(length) => (FramingField::Length(length), BodyFraming::None),
        None if !has_body => (FramingField::None, BodyFraming::None),
        None if request.version == Version::Http11 => (FramingField::Chunked, BodyFraming::Chunked),
        None => (FramingField::None, BodyFraming::UntilClose),
    }
}
