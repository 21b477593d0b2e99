//! One value as bytes: the version, its kind, and its fields.

use crate::field::{Difference, Field};
use crate::reader::{Fault, Problem, Reader};
use flashweir_admission::{flash_crowd, sentry};

/// The version of the encoding. Raised by every change of what a field means, or of which fields there are.
pub const VERSION: u8 = 9;

/// A value that can be sent by itself.
///
/// Sizes, at most: a plan of flash crowds 2 kB, of the sentry 8 kB; an explanation 160 bytes; a sample of
/// flash crowds 75 kB (5,016 latencies, 960 rates, 64 hosts), typically a few hundred bytes; of one gate's
/// sentry 70 kB, typically 200 bytes.
pub trait Message: Sealed {
    /// The word for it in errors.
    const NAME: &'static str;
    /// Its number in the encoding.
    const KIND: u8;
}

/// Only what this crate can write is a message.
#[expect(private_bounds, reason = "seals the trait: the encoding is an affair of this crate")]
pub trait Sealed: Field {}

impl<T: Field> Sealed for T {}

macro_rules! messages {
    ($($kind:literal => $type:ty: $name:literal),+ $(,)?) => {
        $(impl Message for $type {
            const NAME: &'static str = $name;
            const KIND: u8 = $kind;
        })+
    };
}

messages! {
    1 => flash_crowd::Sample: "flash-crowd sample",
    2 => flash_crowd::Plan: "flash-crowd plan",
    3 => flash_crowd::Explanation: "flash-crowd explanation",
    4 => sentry::Sample: "sentry sample",
    5 => sentry::Plan: "sentry plan",
    6 => sentry::Explanation: "sentry explanation",
}

/// Reason for which bytes are not the expected message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted}: {fault}")]
pub struct DecodeError {
    /// Name of the message that was wanted.
    pub wanted: &'static str,
    /// The problem, and where it is.
    pub fault: Fault,
}

/// The bytes of a message.
///
/// ```
/// use flashweir_admission::flash_crowd::Plan;
/// let plan = Plan::open(2);
/// let bytes = flashweir_wire::encode(&plan);
/// assert_eq!(flashweir_wire::decode::<Plan>(&bytes), Ok(plan));
/// let error = flashweir_wire::decode::<Plan>(&bytes[..5]).unwrap_err();
/// assert_eq!(error.to_string(), "flash-crowd plan: byte 5, gate_shares_milli: the bytes end here (truncated?)");
/// ```
#[must_use]
pub fn encode<T: Message>(message: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION, T::KIND];
    message.put(None, &mut bytes);
    bytes
}

/// The message of all of `bytes`.
///
/// # Errors
/// [`DecodeError`] for bytes that end too early or too late, of another version or another kind of message,
/// or that hold what does not exist. Never panics, and takes no more memory than the message may have.
pub fn decode<T: Message>(bytes: &[u8]) -> Result<T, DecodeError> {
    read(bytes).map_err(|fault| DecodeError { wanted: T::NAME, fault })
}

fn read<T: Message>(bytes: &[u8]) -> Result<T, Fault> {
    let mut from = Reader::new(bytes);
    let (version, known) = (from.byte()?, VERSION);
    if version != known {
        return Err(from.fault(Problem::Version { value: version.into(), known: known.into() }));
    }
    let kind = from.byte()?;
    if kind != T::KIND {
        return Err(from.fault(Problem::Kind { value: kind.into(), wanted: T::NAME }));
    }
    let message = T::take(None, &mut from)?;
    from.end()?;
    Ok(message)
}

/// Differences of two messages bit for bit, field by field.
#[must_use]
pub fn differences<T: Message>(first: &T, second: &T) -> Vec<Difference> {
    let mut found = Vec::new();
    first.compare(second, "", &mut found);
    found
}
