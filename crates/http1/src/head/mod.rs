//! Heads: read once into places in the receive buffer, judged line by line as they come.

mod authority;
mod body_framing;
mod connection_options;
mod cursor;
mod field;
mod framing;
mod known;
mod limits;
mod line;
mod request;
mod request_line;
mod response;
mod status_line;
mod target;
mod trailers;
#[cfg(feature = "http")]
mod view;

pub use authority::is_authority;
pub use body_framing::BodyFraming;
pub use connection_options::{ConnectionOptions, elements};
pub use field::{Field, Fields};
pub use known::{FieldSet, KnownField};
pub use limits::HeadLimits;
pub use request::{RequestHead, RequestReader, RequestSpans};
pub use request_line::{Method, Version};
pub use response::{ResponseHead, ResponseReader, ResponseSpans, ResponseViolation};
pub use target::TargetForm;
#[cfg(feature = "http")]
pub use view::{FieldsView, RequestView};

pub(crate) use body_framing::{NO_CONTENT, NOT_MODIFIED, SWITCHING_PROTOCOLS};
pub(crate) use field::FieldSpan;
pub(crate) use trailers::TrailerReader;
