//! Decision ids: short enough to read over the phone, unique within a gateway's memory of decisions.

use core::fmt;
use core::str::FromStr;

/// Names one decision: 16 bits of boot nonce, 8 of worker, 40 of a counter.
///
/// Written as thirteen characters of Crockford's base 32, so it survives being read aloud or typed.
///
/// ```
/// use flashweir_core::DecisionId;
/// let id = DecisionId::new(0xBEEF, 3, 42);
/// assert_eq!(id.to_string().parse::<DecisionId>().unwrap(), id);
/// assert_eq!((id.boot(), id.worker(), id.counter()), (0xBEEF, 3, 42));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecisionId(u64);

impl DecisionId {
    const COUNTER_BITS: u32 = 40;

    /// Packs the three parts; the counter wraps after 2^40 decisions of one worker.
    #[must_use]
    pub const fn new(boot: u16, worker: u8, counter: u64) -> Self {
        let counter = counter & ((1 << Self::COUNTER_BITS) - 1);
        Self(((boot as u64) << 48) | ((worker as u64) << Self::COUNTER_BITS) | counter)
    }

    /// Run of the gateway that decided.
    #[must_use]
    pub const fn boot(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Worker that decided.
    #[must_use]
    pub const fn worker(self) -> u8 {
        (self.0 >> Self::COUNTER_BITS) as u8
    }

    /// Sequence number of the decision within its worker.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.0 & ((1 << Self::COUNTER_BITS) - 1)
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 13;

/// Digits of a [`DecisionId`].
#[derive(Clone, Copy, Debug)]
pub struct DecisionDigits([u8; LENGTH]);

impl DecisionDigits {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // The alphabet is ASCII, so this cannot fail.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl DecisionId {
    /// The id as it is written; cheaper than formatting it.
    #[must_use]
    pub fn digits(self) -> DecisionDigits {
        let mut digits = [0u8; LENGTH];
        let mut rest = self.0;
        for place in digits.iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        DecisionDigits(digits)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.digits().as_str())
    }
}

/// The text is not a decision id: thirteen characters of 0-9 a-z without i, l, o, u.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADecisionId;

impl fmt::Display for NotADecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a decision id: expected 13 characters of 0-9 and a-z without i, l, o and u")
    }
}

impl core::error::Error for NotADecisionId {}

impl FromStr for DecisionId {
    type Err = NotADecisionId;

    fn from_str(text: &str) -> Result<Self, NotADecisionId> {
        if text.len() != LENGTH {
            return Err(NotADecisionId);
        }
        text.bytes()
            .try_fold(0u64, |value, byte| {
                let byte = byte.to_ascii_lowercase();
                let digit = ALPHABET.iter().position(|&known| known == byte).ok_or(NotADecisionId)?;
                let shifted = value.checked_mul(32).ok_or(NotADecisionId)?;
                Ok(shifted | digit as u64)
            })
            .map(Self)
    }
}
