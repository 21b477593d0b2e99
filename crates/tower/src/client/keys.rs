//! Keys from a file, and their HMAC-SHA-256 (by `ring`, which TLS brings along).

use flashweir_feedback::{KeyFileError, KeyLineProblem, KeyRing, Mac, SharedKeys};
use ring::hmac;
use std::fmt;
use std::path::Path;

/// One key.
pub struct HmacKey(hmac::Key);

/// The keys of one node, as their file has them: the first signs, all verify.
#[derive(Debug, Default, Clone)]
pub struct Keys(SharedKeys);

/// Reason for which a file of keys cannot be used. The message names the file and the line, and never the
/// secret.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// It is longer than a file of keys can be.
    #[error("{file}: {size} bytes, expected at most {FILE_BYTES_MAX}")]
    Size {
        /// Name of the file.
        file: String,
        /// Its size, bytes.
        size: u64,
    },
    /// A line of it is wrong.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        problem: KeyLineProblem,
    },
    /// It has no key.
    #[error("{file}: no key; expected lines `NUMBER SECRET`, for instance `1 correct-horse-battery-staple`")]
    Empty {
        /// Name of the file.
        file: String,
    },
}

/// A file of 15 keys is not longer.
const FILE_BYTES_MAX: u64 = 64 << 10;

impl Mac for HmacKey {
    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let mut tag = [0; 32];
        // Holds because SHA-256 has 32 bytes.
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacKey")
    }
}

impl Keys {
    /// Reads a file, as `feedback.keys_file` of the gateway: lines `NUMBER SECRET`, number 1 to 15, the
    /// secret all text to the end of the line without blanks around it, 16 bytes or more. Empty lines and
    /// lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`KeysError`] names the file and the line, and never the secret.
    pub fn load(path: &Path) -> Result<Self, KeysError> {
        let file = path.display().to_string();
        let read = |error| KeysError::Read { file: file.clone(), error };
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > FILE_BYTES_MAX {
            return Err(KeysError::Size { file, size });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(read)?, &file)
    }

    /// Reads the text of a file; `file` is its name in messages.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str) -> Result<Self, KeysError> {
        let file = || file.to_owned();
        SharedKeys::parse(text).map(Self).map_err(|error| match error {
            KeyFileError::Line { line, problem } => KeysError::Line { file: file(), line, problem },
            KeyFileError::Empty => KeysError::Empty { file: file() },
        })
    }

    /// Returns whether there are none: fields without tags are then taken from the node's own responses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys, ready to be used.
    #[must_use]
    pub fn ring(&self) -> KeyRing<HmacKey> {
        self.0.ring(|secret| HmacKey(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_feedback::Field;

    /// The second example of docs/feedback.md.
    #[test]
    fn the_protocols_example_verifies() {
        let keys =
            Keys::parse("# newest first\n\t1 \t correct horse battery staple \r\n", "api.keys").unwrap();
        let value = b":EWVT8QAAAAAqAQIAADDUB9BFDGr5VbbZAa+gQ90vZMOB:";
        let feedback = Field::parse(value, &keys.ring(), b"shop>api").unwrap();
        assert_eq!((feedback.sequence, feedback.rate.map(|rate| rate.as_milli())), (42, Some(12_500)));
        assert!(Field::parse(value, &keys.ring(), b"blog>api").is_err());
        assert!(!format!("{keys:?} {:?}", keys.ring()).contains("correct"));
    }

    #[test]
    fn a_wrong_file_is_named() {
        let message = Keys::parse("1 short", "api.keys").unwrap_err().to_string();
        assert!(message.starts_with("api.keys:1: not a key, expected 16 to 1024"), "{message}");
    }
}
