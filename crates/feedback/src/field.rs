//! The field `Flashweir-Overload`: one Byte Sequence (RFC 9651 §3.3.5), 26 bytes without a tag and 46 with
//! one.
//!
//! ```text
//! byte 0      version (1) in the high half, number of the key in the low half; 0 for a message without a tag
//! bytes 1–16  epoch u32, sequence u32, rank u8, severity u8, rate u32 (1/1000 per second; 2³²−1: release), time to live u16 (ms),
//!             all big-endian
//! bytes 17–32 the tag, where there is a key: the first half of HMAC-SHA-256 over label, context and bytes 0–16
//! ```
//!
//! The parser is strict: a field that an honest node would not have written is refused whole, with an error
//! that says why.
//! Cost: no allocation; base64 of 33 bytes, and one tag.

use crate::keys::{is_equal, tag_of};
use crate::{Feedback, KeyRing, Mac, SEVERITY_MAX, TAG_BYTES, TTL_MAX, TTL_MIN};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Rate};

/// The field's name.
pub const NAME: &str = "flashweir-overload";
/// Version on the wire.
const VERSION: u8 = 1;
/// Bytes of the message, after the byte with version and key.
const BODY_BYTES: usize = 16;
/// The rate on the wire that stands for none.
const NO_RATE: u32 = u32::MAX;
/// Bytes without a tag.
const PLAIN_BYTES: usize = 1 + BODY_BYTES;
/// Bytes with one.
const TAGGED_BYTES: usize = PLAIN_BYTES + TAG_BYTES;
/// Characters of the longest field: colons around base64.
const FIELD_BYTES: usize = 2 + TAGGED_BYTES.div_ceil(3) * 4;
const _: () = assert!(FIELD_BYTES <= 64, "the field is to cost a response no more than 64 bytes");

/// A field's value, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    text: [u8; FIELD_BYTES],
    length: u8,
}

/// The bytes are no field that an honest node would send to this sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Neither the length of a message without a tag nor that of one with a tag.
    #[error("a field of {length} bytes: expected 26, or 46 with a tag")]
    Length {
        /// The length of the field.
        length: usize,
    },
    /// Not canonical base64 between two colons.
    #[error("not a Byte Sequence of RFC 9651")]
    Syntax,
    /// Another version of the protocol.
    #[error("version {version}: expected {VERSION}")]
    Version {
        /// The version in the message.
        version: u8,
    },
    /// No tag, where there are keys.
    #[error("the message has no tag, and there are keys")]
    Untagged,
    /// A tag under a key that is not there.
    #[error("the message is signed with key {id}, which is not among the keys")]
    UnknownKey {
        /// The key's number.
        id: u8,
    },
    /// The tag is wrong: another sender's message, a changed one, or one under another key of that number.
    #[error("the tag is wrong")]
    Forged,
    /// A number that no node may send.
    #[error("{what} {value}: expected at most {max}")]
    Absurd {
        /// Name of the number.
        what: &'static str,
        /// The number in the message.
        value: u64,
        /// The largest that makes sense.
        max: u64,
    },
}

impl Field {
    /// Writes a message for the sender that shares `context` (both names, for instance) and the ring's first
    /// key.
    ///
    /// # Errors
    /// [`FieldError::Absurd`] for a message that no sender would accept.
    pub fn new<M: Mac>(feedback: &Feedback, keys: &KeyRing<M>, context: &[u8]) -> Result<Self, FieldError> {
        check(feedback)?;
        let mut bytes = [0; TAGGED_BYTES];
        let id = keys.signing_id();
        bytes[0] = VERSION << 4 | id;
        bytes[1..PLAIN_BYTES].copy_from_slice(&body_of(feedback));
        let mut length = PLAIN_BYTES;
        if let Some(mac) = keys.key(id) {
            let tag = tag_of(mac, context, &bytes[..PLAIN_BYTES]);
            bytes[PLAIN_BYTES..].copy_from_slice(&tag);
            length = TAGGED_BYTES;
        }
        let mut text = [b':'; FIELD_BYTES];
        // Holds because the text has room for the longest message.
        let written = STANDARD.encode_slice(&bytes[..length], &mut text[1..]).expect("room for base64");
        text[1 + written] = b':';
        Ok(Self { text, length: (written + 2) as u8 })
    }

    /// Reads a field's value as it arrived.
    ///
    /// # Errors
    /// Everything that is not a message for this sender; with keys in the ring, every message without a tag.
    pub fn parse<M: Mac>(value: &[u8], keys: &KeyRing<M>, context: &[u8]) -> Result<Feedback, FieldError> {
        let plain_length = 2 + PLAIN_BYTES.div_ceil(3) * 4;
        if value.len() != FIELD_BYTES && value.len() != plain_length {
            return Err(FieldError::Length { length: value.len() });
        }
        let [b':', text @ .., b':'] = value else { return Err(FieldError::Syntax) };
        let mut bytes = [0; TAGGED_BYTES];
        let length = STANDARD.decode_slice(text, &mut bytes).map_err(|_| FieldError::Syntax)?;
        let (version, id) = (bytes[0] >> 4, bytes[0] & 0xF);
        if version != VERSION {
            return Err(FieldError::Version { version });
        }
        let expected = if id == 0 { PLAIN_BYTES } else { TAGGED_BYTES };
        if length != expected {
            return Err(FieldError::Length { length: value.len() });
        }
        verify(&bytes, id, keys, context)?;
        let mut body = [0; BODY_BYTES];
        body.copy_from_slice(&bytes[1..PLAIN_BYTES]);
        message_of(&body)
    }

    /// The value that has just been parsed, to recognise it when it is repeated.
    pub(crate) fn of_parsed(value: &[u8]) -> Option<Self> {
        let mut text = [0; FIELD_BYTES];
        text.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { text, length: value.len() as u8 })
    }

    /// The value as it goes into the response.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length.into()]
    }
}

fn verify<M: Mac>(
    bytes: &[u8; TAGGED_BYTES],
    id: u8,
    keys: &KeyRing<M>,
    context: &[u8],
) -> Result<(), FieldError> {
    if id == 0 {
        return if keys.is_empty() { Ok(()) } else { Err(FieldError::Untagged) };
    }
    let mac = keys.key(id).ok_or(FieldError::UnknownKey { id })?;
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&bytes[PLAIN_BYTES..]);
    match is_equal(&tag, &tag_of(mac, context, &bytes[..PLAIN_BYTES])) {
        true => Ok(()),
        false => Err(FieldError::Forged),
    }
}

/// Checks that a node may say this; the numbers of every message are checked when it is made and when it is
/// read.
///
/// # Errors
/// [`FieldError::Absurd`] for a rank, severity or time to live that no node may send.
pub(crate) fn check(feedback: &Feedback) -> Result<(), FieldError> {
    let absurd = |what, value: u64, max: u64| Err(FieldError::Absurd { what, value, max });
    if usize::from(feedback.from_rank) >= CLASSES {
        return absurd("rank", feedback.from_rank.into(), CLASSES as u64 - 1);
    }
    if feedback.severity > SEVERITY_MAX {
        return absurd("severity", feedback.severity.into(), SEVERITY_MAX.into());
    }
    if !(TTL_MIN..=TTL_MAX).contains(&feedback.ttl) {
        return absurd("time to live, ms,", feedback.ttl.as_millis() as u64, TTL_MAX.as_millis() as u64);
    }
    Ok(())
}

fn body_of(feedback: &Feedback) -> [u8; BODY_BYTES] {
    let rate = match feedback.rate {
        Some(rate) => u32::try_from(rate.as_milli()).unwrap_or(NO_RATE).min(NO_RATE - 1),
        None => NO_RATE,
    };
    let ttl_ms = u16::try_from(feedback.ttl.as_millis()).unwrap_or(u16::MAX);
    let mut bytes = [0; BODY_BYTES];
    bytes[..4].copy_from_slice(&feedback.epoch.to_be_bytes());
    bytes[4..8].copy_from_slice(&feedback.sequence.to_be_bytes());
    (bytes[8], bytes[9]) = (feedback.from_rank, feedback.severity);
    bytes[10..14].copy_from_slice(&rate.to_be_bytes());
    bytes[14..].copy_from_slice(&ttl_ms.to_be_bytes());
    bytes
}

fn message_of(bytes: &[u8; BODY_BYTES]) -> Result<Feedback, FieldError> {
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let rate = word(10);
    let ttl_ms = u16::from_be_bytes([bytes[14], bytes[15]]);
    let feedback = Feedback {
        epoch: word(0),
        sequence: word(4),
        from_rank: bytes[8],
        severity: bytes[9],
        rate: (rate != NO_RATE).then(|| Rate::from_milli(rate.into())),
        ttl: Duration::from_millis(ttl_ms.into()),
    };
    check(&feedback)?;
    Ok(feedback)
}
