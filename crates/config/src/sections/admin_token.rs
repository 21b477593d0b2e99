//! Secret that the admin listener asks for.

use core::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::Problem;

/// Bytes of a secret; the shorter bound keeps guesses out.
const BYTES: core::ops::RangeInclusive<usize> = 16..=512;

/// A secret that clients of the admin listener send as `Authorization: Bearer SECRET` (RFC 6750 §2.1).
/// Its text is not in its `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminToken {
    file: PathBuf,
    /// Empty until it is read.
    text: String,
}

impl AdminToken {
    /// The secret in a file, which is not read yet.
    pub(super) fn in_file(file: PathBuf) -> Self {
        Self { file, text: String::new() }
    }

    /// Reads the secret in a file.
    ///
    /// # Errors
    /// A message that names the file: it cannot be read, or holds no secret.
    pub fn read_from(file: &Path) -> Result<Self, String> {
        let what = |why: String| {
            let (least, most) = (BYTES.start(), BYTES.end());
            format!(
                "`{}` {why}, expected one line of {least} to {most} visible ASCII characters, as `openssl rand -hex 24` prints",
                file.display()
            )
        };
        let mut text = String::new();
        // One byte more than fits shows that there is more.
        let bytes_most = *BYTES.end() as u64 + 2;
        File::open(file)
            .and_then(|opened| opened.take(bytes_most).read_to_string(&mut text))
            .map_err(|error| what(format!("cannot be read: {error}")))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if !BYTES.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(what("holds no token".to_owned()));
        }
        Ok(Self { file: file.to_owned(), text: text.to_owned() })
    }

    pub(crate) fn read(&mut self) -> Result<(), Problem> {
        *self = Self::read_from(&self.file).map_err(|what| Problem::new("admin.token_file", what))?;
        Ok(())
    }

    /// Value of `Authorization` that has it.
    #[must_use]
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.text)
    }

    /// Returns whether a value of `Authorization` has it. The time taken does not depend on which of its
    /// bytes differ.
    #[must_use]
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, given)) = authorization.split_at_checked("Bearer ".len()) else { return false };
        let differing =
            self.text.bytes().zip(given).fold(0, |differing, (ours, theirs)| differing | (ours ^ theirs));
        let is_equal = std::hint::black_box(differing) == 0;
        scheme.eq_ignore_ascii_case(b"Bearer ")
            && !self.text.is_empty()
            && given.len() == self.text.len()
            && is_equal
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Result<AdminToken, String> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("a file");
        AdminToken::read_from(file.path())
            .map_err(|what| what.replace(&*file.path().to_string_lossy(), "FILE"))
    }

    #[test]
    fn only_the_whole_token_is_right() {
        let token = token("0123456789abcdef\n").expect("a token");
        assert_eq!(token.authorization(), "Bearer 0123456789abcdef");
        for (given, is_right) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer 0123456789abcdef", true),
            ("Bearer 0123456789abcdeF", false),
            ("Bearer 0123456789abcde", false),
            ("Bearer 0123456789abcdef0", false),
            ("Basic  0123456789abcdef", false),
            ("Bearer ", false),
            ("", false),
        ] {
            assert_eq!(token.is_in(given.as_bytes()), is_right, "{given:?}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn what_is_no_token_is_said() {
        let expected =
            "expected one line of 16 to 512 visible ASCII characters, as `openssl rand -hex 24` prints";
        for text in [
            "",
            "\n",
            "short",
            "0123456789abcdef 0123456789abcdef",
            "0123456789abcdef\n0123456789abcdef\n",
            &"x".repeat(513),
        ] {
            assert_eq!(
                token(text).expect_err("no token"),
                format!("`FILE` holds no token, {expected}"),
                "{text:?}"
            );
        }
        let said = AdminToken::read_from(Path::new("/nowhere")).expect_err("no file");
        assert_eq!(
            said,
            format!("`/nowhere` cannot be read: No such file or directory (os error 2), {expected}")
        );
    }
}
