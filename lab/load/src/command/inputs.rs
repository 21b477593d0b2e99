//! Files that options name, standard input among them, and what was noticed while they were read.

use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// First bytes of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Opens files for options; standard input, called `-`, for one of them at most.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    stdin_taken: bool,
    notes: Vec<String>,
}

impl Inputs {
    /// The file's bytes as they are.
    ///
    /// # Errors
    /// A file that cannot be opened, or standard input for a second time; both name it.
    pub(crate) fn open(&mut self, path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
        if path == Path::new("-") {
            ensure!(!self.stdin_taken, "only one option can read standard input (-)");
            self.stdin_taken = true;
            return Ok(Box::new(std::io::stdin().lock()));
        }
        let opened = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
        ensure!(!opened.metadata()?.is_dir(), "{} is a directory", path.display());
        Ok(Box::new(BufReader::new(opened)))
    }

    /// The same, and a compressed file is refused: as text it would be nothing but garbage.
    ///
    /// # Errors
    /// As [`open`](Self::open), and a compressed file.
    pub(crate) fn open_text(&mut self, path: &Path, option: &str) -> anyhow::Result<Box<dyn BufRead>> {
        let mut text = self.open(path)?;
        let first = text.fill_buf().with_context(|| format!("{} cannot be read", name(path)))?;
        if first.starts_with(&GZIP) {
            let name = name(path);
            bail!("{name} is gzip-compressed: gzip -dc {name} | flashweir load URL {option} - ...");
        }
        Ok(text)
    }

    /// The whole of a file that is expected to have at most `bytes_most`.
    ///
    /// # Errors
    /// As [`open`](Self::open), and a file that is longer or cannot be read.
    pub(crate) fn read(&mut self, path: &Path, bytes_most: u64) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open(path)?.take(bytes_most + 1).read_to_end(&mut bytes);
        read.with_context(|| format!("{} cannot be read", name(path)))?;
        ensure!(bytes.len() as u64 <= bytes_most, "{} has more than {bytes_most} bytes", name(path));
        Ok(bytes)
    }

    /// Remembers something the user should know before the run.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The notes, in order.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Name of a file in messages.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let five = file(b"12345");
        assert_eq!(Inputs::default().read(five.path(), 5).unwrap(), b"12345");
        let error = Inputs::default().read(five.path(), 4).unwrap_err();
        assert!(error.to_string().ends_with("has more than 4 bytes"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let check = |path: &Path, wanted: &str| {
            let error = Inputs::default().open_text(path, "--profile").err().expect("an error").to_string();
            assert!(error.contains(wanted) && error.contains(&path.display().to_string()), "{error}");
        };
        check(Path::new("not-there"), "cannot be opened");
        check(&std::env::temp_dir(), "is a directory");
        check(file(&[0x1f, 0x8b, 8, 0]).path(), "gzip -dc");
    }

    #[test]
    fn standard_input_is_read_once() {
        let mut inputs = Inputs::default();
        assert!(inputs.open(Path::new("-")).is_ok());
        assert!(inputs.open(Path::new("-")).is_err());
    }
}
