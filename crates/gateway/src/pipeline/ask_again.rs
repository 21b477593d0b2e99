//! A deferred request for which no other answer came: it is refused, or asks the pipeline once more.

use super::admit::Admission;
use super::deferred::Deferred;
use super::permit::Permit;
use super::wait::Decided;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::Asking;
use flashweir_core::{Instant, Reason};

impl Deferred {
    /// There is no other answer: it is refused, or asks the pipeline once more where it had a turn.
    pub(crate) async fn alone(
        self: Box<Self>,
        now: Instant,
        full: Option<Reason>,
    ) -> Result<Box<Permit>, Refusal> {
        let mut deferred = self;
        // Twice at most: one that asks again keeps its turn.
        loop {
            deferred = match deferred.refuse(now) {
                Ok(refusal) => return Err(refusal),
                Err(deferred) => match deferred.ask_again(now, full).decided().await {
                    Decided::Admitted(permit) => return Ok(permit),
                    Decided::Refused(refusal) => return Err(refusal),
                    Decided::Deferred(deferred) => deferred,
                },
            };
        }
    }

    /// Asks the pipeline once more, for the room that there may be now. The request's demand and its refusal
    /// have been counted, and are not counted again; nor are those of this try.
    pub(crate) fn ask_again(mut self: Box<Self>, now: Instant, full: Option<Reason>) -> Admission<Box<Self>> {
        self.why = None;
        let mut asked = self.asked;
        asked.request.asking = Asking::Again;
        asked.request.candidate = None;
        self.host.admit_or_defer(now, asked, full)
    }
}
