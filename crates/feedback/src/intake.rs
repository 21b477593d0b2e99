//! Fields as they come with an upstream's responses.

use crate::field::Field;
use crate::{FieldError, KeyRing, Mac, News, UpstreamLimit};
use alloc::vec::Vec;
use flashweir_core::{Instant, Rate};

/// Takes in what one upstream says, with the keys that it shares with this sender.
///
/// Most responses repeat the field of the response before, byte by byte; those cost one comparison. Others
/// are parsed and verified once. Cost: 10 ns for a repetition, about one HMAC for news (`benches/feedback`).
#[derive(Debug)]
pub struct Intake<M> {
    keys: KeyRing<M>,
    context: Vec<u8>,
    /// The newest field that was in order.
    last: Option<Field>,
    limit: UpstreamLimit,
}

/// Outcome of taking a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// News: the limit may have changed.
    New,
    /// The newest message once more.
    Repeated,
    /// An older message: late, or replayed.
    Stale,
}

impl<M: Mac> Intake<M> {
    /// For an upstream with which this sender shares the keys and the context (both names, for instance).
    /// Without keys, the shell hands over only fields that came with responses of that upstream.
    #[must_use]
    pub fn new(keys: KeyRing<M>, context: &[u8]) -> Self {
        Self { keys, context: context.to_vec(), last: None, limit: UpstreamLimit::default() }
    }

    /// Takes a field's value in. `offered` is asked for only where there is news: see
    /// [`UpstreamLimit::hear`].
    ///
    /// # Errors
    /// [`FieldError`]; then nothing has changed.
    pub fn take(
        &mut self,
        now: Instant,
        value: &[u8],
        offered: impl FnOnce() -> Rate,
    ) -> Result<Taken, FieldError> {
        if self.last.as_ref().is_some_and(|last| last.as_bytes() == value) {
            return Ok(Taken::Repeated);
        }
        let feedback = Field::parse(value, &self.keys, &self.context)?;
        match self.limit.hear(now, &feedback, offered()) {
            News::Newer => {
                self.last = Field::of_parsed(value);
                Ok(Taken::New)
            }
            News::Stale => Ok(Taken::Stale),
        }
    }

    /// The same for a message that came by another way than a response, which is signed for another context.
    /// Without keys none is believed: any host can send a datagram.
    ///
    /// # Errors
    /// [`FieldError`], also [`FieldError::Untagged`] where there are no keys; then nothing has changed.
    pub fn take_datagram(
        &mut self,
        now: Instant,
        value: &[u8],
        context: &[u8],
        offered: impl FnOnce() -> Rate,
    ) -> Result<Taken, FieldError> {
        if self.keys.is_empty() {
            return Err(FieldError::Untagged);
        }
        let feedback = Field::parse(value, &self.keys, context)?;
        match self.limit.hear(now, &feedback, offered()) {
            News::Newer => Ok(Taken::New),
            News::Stale => Ok(Taken::Stale),
        }
    }

    /// Other keys from now on. The limit in force stays.
    pub fn set_keys(&mut self, keys: KeyRing<M>) {
        self.keys = keys;
        self.last = None;
    }

    /// The limit of the upstream.
    #[must_use]
    pub fn limit(&self) -> &UpstreamLimit {
        &self.limit
    }
}
