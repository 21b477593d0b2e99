//! Keys from a file, and their HMAC-SHA-256 (by `ring`, which TLS brings along).

use flashweir_feedback::{KEY_ID_MAX, KeyRing, KeyRingError, Mac};
use ring::hmac;
use std::fmt;
use std::path::Path;

/// One key.
pub struct HmacKey(hmac::Key);

/// The keys of one node, as their file has them: the first signs, all verify.
#[derive(Debug, Default, Clone)]
pub struct Keys(Vec<(u8, Secret)>);

#[derive(Clone)]
struct Secret(Vec<u8>);

/// The file has no keys that can be used.
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
    /// A line of it is wrong. The secret is not in the message.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// It has no key.
    #[error("{file}: no key; expected lines `NUMBER SECRET`, for instance `1 correct-horse-battery-staple`")]
    Empty {
        /// Name of the file.
        file: String,
    },
}

/// The shortest secret, bytes: as long as the tag, or guessing the secret would be easier than guessing a
/// tag.
const SECRET_BYTES_MIN: usize = 16;
/// The longest: HMAC hashes longer ones down anyway.
const SECRET_BYTES_MAX: usize = 1_024;
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
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
            let problem = format!("the file has {size} bytes, expected at most {FILE_BYTES_MAX}");
            return Err(KeysError::Line { file, line: 1, problem });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(read)?, &file)
    }

    /// Reads the text of a file; `file` is its name in messages.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file: &str) -> Result<Self, KeysError> {
        let mut keys: Vec<(u8, Secret)> = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |problem: String| KeysError::Line { file: file.to_owned(), line: index + 1, problem };
            let (number, secret) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong("expected `NUMBER SECRET`".to_owned()))?;
            let secret = secret.trim_start();
            let number =
                number.parse().map_err(|_| wrong(format!("the number must be 1 to {KEY_ID_MAX}")))?;
            if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
                let length = secret.len();
                return Err(wrong(format!(
                    "the secret has {length} bytes, expected {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}"
                )));
            }
            keys.push((number, Secret(secret.as_bytes().to_vec())));
            let ring = KeyRing::new(keys.iter().map(|&(number, _)| (number, ())).collect());
            ring.map_err(|error: KeyRingError| wrong(error.to_string()))?;
        }
        if keys.is_empty() { Err(KeysError::Empty { file: file.to_owned() }) } else { Ok(Self(keys)) }
    }

    /// Returns whether there are none: fields without tags are then taken from the node's own responses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys, ready to be used.
    #[must_use]
    pub fn ring(&self) -> KeyRing<HmacKey> {
        let key = |(number, secret): &(u8, Secret)| {
            (*number, HmacKey(hmac::Key::new(hmac::HMAC_SHA256, &secret.0)))
        };
        // Holds because the numbers were checked when the keys were read.
        KeyRing::new(self.0.iter().map(key).collect()).expect("numbers that were checked")
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
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line_and_without_its_secret() {
        let problem = |text: &str| Keys::parse(text, "api.keys").unwrap_err().to_string();
        assert_eq!(problem("x"), "api.keys:1: expected `NUMBER SECRET`");
        assert_eq!(problem("\nx correct horse battery staple"), "api.keys:2: the number must be 1 to 15");
        assert_eq!(
            problem("0 correct horse battery staple"),
            "api.keys:1: key 0: the number must be 1 to 15"
        );
        assert_eq!(problem("1 short"), "api.keys:1: the secret has 5 bytes, expected 16 to 1024");
        let twice = "1 correct horse battery staple\n1 other horse battery staple";
        assert_eq!(problem(twice), "api.keys:2: key 1 is there twice");
        assert!(problem("# nothing\n").starts_with("api.keys: no key; expected lines"));
        let keys = Keys::parse("1 correct horse battery staple", "api.keys").unwrap();
        assert!(!format!("{keys:?} {:?}", keys.ring()).contains("correct"));
    }
}
