//! The file with the keys that nodes share: lines of a number, a blank, and a secret.

use crate::keys::{KEY_ID_MAX, KeyRing};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The keys of one node by number, as their file has them: the first signs, all verify. Never prints a
/// secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SharedKeys(Vec<(u8, Box<[u8]>)>);

/// Reason for which a file with keys cannot be used. No message has a secret in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// One line is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        problem: KeyLineProblem,
    },
    /// There is no line with a key.
    #[error("it holds no key")]
    Empty,
}

/// Fault of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyLineProblem {
    /// Nothing comes after the number.
    #[error("no blank after the key's number")]
    NoSecret,
    /// The number is that of no key.
    #[error("the number is not one of 1 to {KEY_ID_MAX}")]
    Number,
    /// The secret is too short or too long, or has other characters.
    #[error(
        "not a key, expected {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} visible ASCII characters or blanks"
    )]
    Secret,
    /// Its number is that of an earlier line.
    #[error("key {0} is there twice")]
    Twice(u8),
}

/// Minimum length of a secret, that of the tag: a shorter one would be easier to guess than a tag.
const SECRET_BYTES_MIN: usize = 16;
/// HMAC hashes longer ones down anyway.
const SECRET_BYTES_MAX: usize = 1_024;

impl SharedKeys {
    /// Reads the text of a file: on each line a number from 1 to 15, a blank, and a secret of 16 to 1,024
    /// visible ASCII characters or blanks. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that is wrong, or a file without keys.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let mut keys: Vec<(u8, Box<[u8]>)> = Vec::new();
        for (line, text) in (1..).zip(text.lines().map(str::trim)) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |problem| KeyFileError::Line { line, problem };
            let (number, secret) = one_key(text).map_err(wrong)?;
            if keys.iter().any(|&(known, _)| known == number) {
                return Err(wrong(KeyLineProblem::Twice(number)));
            }
            keys.push((number, secret.as_bytes().into()));
        }
        if keys.is_empty() { Err(KeyFileError::Empty) } else { Ok(Self(keys)) }
    }

    /// Returns whether there are none: messages then have no tags.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number and secret of each.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.0.iter().map(|(number, secret)| (*number, &**secret))
    }

    /// The keys, ready to be used; `key` makes one of its secret.
    pub fn ring<M>(&self, key: impl Fn(&[u8]) -> M) -> KeyRing<M> {
        let keys = self.iter().map(|(number, secret)| (number, key(secret)));
        // Holds because numbers out of range or there twice are no keys of a file.
        KeyRing::new(keys.collect()).expect("numbers that were checked")
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.iter().map(|(number, _)| number);
        f.write_str("SharedKeys ")?;
        f.debug_list().entries(numbers).finish()
    }
}

fn one_key(line: &str) -> Result<(u8, &str), KeyLineProblem> {
    let (number, secret) = line.split_once(char::is_whitespace).ok_or(KeyLineProblem::NoSecret)?;
    let number = number.parse().ok().filter(|number| (1..=KEY_ID_MAX).contains(number));
    let number = number.ok_or(KeyLineProblem::Number)?;
    let secret = secret.trim_start();
    let is_visible = secret.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let fits = is_visible && (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len());
    if fits { Ok((number, secret)) } else { Err(KeyLineProblem::Secret) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_line_is_a_number_and_a_key() {
        assert_eq!(one_key("1 correct-horse-battery"), Ok((1, "correct-horse-battery")));
        assert_eq!(one_key("15\tcorrect horse battery staple"), Ok((15, "correct horse battery staple")));
        for (line, wrong) in [
            ("correct-horse-battery", KeyLineProblem::NoSecret),
            ("0 correct-horse-battery", KeyLineProblem::Number),
            ("16 correct-horse-battery", KeyLineProblem::Number),
            ("x correct-horse-battery", KeyLineProblem::Number),
            ("2 short", KeyLineProblem::Secret),
            ("2 correct horse battery staplé", KeyLineProblem::Secret),
        ] {
            assert_eq!(one_key(line), Err(wrong), "{line}");
        }
    }

    #[test]
    fn a_wrong_file_is_named_by_its_line_and_without_its_secret() {
        let problem = |text: &str| SharedKeys::parse(text).unwrap_err().to_string();
        assert_eq!(problem("\nx correct horse battery staple"), "line 2: the number is not one of 1 to 15");
        let short = "line 1: not a key, expected 16 to 1024 visible ASCII characters or blanks";
        assert_eq!(problem("1 short"), short);
        let twice = "1 correct horse battery staple\n1 other horse battery staple";
        assert_eq!(problem(twice), "line 2: key 1 is there twice");
        assert_eq!(problem("# nothing\n"), "it holds no key");
        let keys = SharedKeys::parse("# newest first\n\t3 \t correct horse battery staple \r\n").unwrap();
        assert_eq!(std::format!("{keys:?}"), "SharedKeys [3]");
    }
}
