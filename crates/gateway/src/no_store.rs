//! The field that each answer of the gateway itself has: no cache is to keep a refusal or an error.

use http::header::CACHE_CONTROL;
use http::{HeaderName, HeaderValue};

/// `Cache-Control: no-store`.
pub(crate) const NO_STORE: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
