//! Writes a file whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes the text beside the file first and then puts it in its place. A target that is no ordinary file (a
/// pipe, a terminal) is written to directly: no reader finds half of it later, and it must not be replaced.
///
/// # Errors
/// A place that cannot be written to; the file there is as it was.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path)?,
        Ok(_) => return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let draft = target.with_file_name(format!(".{name}.{}.draft", std::process::id()));
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &target));
    if written.is_err() {
        // The error to tell is the one before; a draft that was never made cannot be removed.
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_leaves_no_draft() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.html");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(directory.path())),
            ("two", vec!["run.html".to_owned()])
        );
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_replaced() {
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "text").unwrap_err();
        write(&directory.path().join("missing").join("run.html"), "text").unwrap_err();
        assert!(names(directory.path()).is_empty());
    }
}
