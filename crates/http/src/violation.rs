//! Rules of framing that a message can break: those of `flashweir_http1`, which heads of HTTP/2 break, too.

pub use flashweir_http1::FramingViolation;
