//! The decision about a request, by the cache or the pipeline.

use crate::body::Body;
use crate::pipeline::Permit;
use crate::refusal::Refusal;
use flashweir_http::head::Answer;

/// The decision about a request.
pub(crate) enum Decision {
    /// It goes to the origin.
    Admit(Box<Permit>),
    /// The pipeline refused it.
    Refuse(Refusal),
    /// It is answered without the origin, and counted.
    Answer(Answer<Body>),
}

impl From<Result<Box<Permit>, Refusal>> for Decision {
    fn from(decided: Result<Box<Permit>, Refusal>) -> Self {
        decided.map_or_else(Self::Refuse, Self::Admit)
    }
}
