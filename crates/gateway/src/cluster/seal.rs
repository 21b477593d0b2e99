//! HMAC-SHA-256 over messages of the cluster, by `ring`, with the keys of a file that all its gateways have.

use ring::hmac;

/// Keys by number, the one that seals first.
#[derive(Debug)]
pub(crate) struct Keys(Vec<(u8, hmac::Key)>);

/// Reason for which a message is not one of this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    #[error("too short for a tag")]
    Short,
    #[error("sealed with key {0}, which is not in cluster.keys_file")]
    UnknownKey(u8),
    #[error("the tag is wrong: another key has the same number, or the message was changed")]
    Forged,
}

/// Bytes of a tag, and of the key's number before it.
const TAG: usize = 32;
const SEAL: usize = TAG + 1;

impl Keys {
    pub(crate) fn new<'a>(keys: impl IntoIterator<Item = (u8, &'a [u8])>) -> Self {
        let key = |(number, key): (u8, &[u8])| (number, hmac::Key::new(hmac::HMAC_SHA256, key));
        Self(keys.into_iter().map(key).collect())
    }

    /// The content with the seal behind it. Without any key there is none, and no gateway takes it.
    pub(crate) fn seal(&self, mut content: Vec<u8>) -> Vec<u8> {
        if let Some((number, key)) = self.0.first() {
            content.push(*number);
            let tag = hmac::sign(key, &content);
            content.extend_from_slice(tag.as_ref());
        }
        content
    }

    /// The content of a sealed message.
    ///
    /// # Errors
    /// [`SealError`]: no gateway of this cluster sealed it.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], SealError> {
        let (signed, tag) = bytes
            .len()
            .checked_sub(SEAL)
            .map(|content| bytes.split_at(content + 1))
            .ok_or(SealError::Short)?;
        let (content, number) = (&signed[..signed.len() - 1], signed[signed.len() - 1]);
        let (_, key) =
            self.0.iter().find(|(known, _)| *known == number).ok_or(SealError::UnknownKey(number))?;
        hmac::verify(key, signed, tag).map_err(|_| SealError::Forged)?;
        Ok(content)
    }

    /// Two numbers that all gateways of the cluster derive from their first key for one purpose.
    pub(crate) fn derive(&self, purpose: &[u8]) -> Option<(u64, u64)> {
        let (_, key) = self.0.first()?;
        let tag = hmac::sign(key, purpose);
        let (first, second) = (tag.as_ref()[..8].try_into().ok()?, tag.as_ref()[8..16].try_into().ok()?);
        Some((u64::from_be_bytes(first), u64::from_be_bytes(second)))
    }
}
