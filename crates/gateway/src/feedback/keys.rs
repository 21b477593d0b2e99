//! HMAC-SHA-256 for messages between nodes, by `ring`, which rustls brings along anyway.

use flashweir_feedback::{KeyRing, Mac, SharedKeys};
use ring::hmac;

/// One key.
#[derive(Debug)]
pub(crate) struct HmacKey(hmac::Key);

impl Mac for HmacKey {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

/// The keys of a configuration.
pub(super) fn ring(keys: &SharedKeys) -> KeyRing<HmacKey> {
    keys.ring(|secret| HmacKey(hmac::Key::new(hmac::HMAC_SHA256, secret)))
}
