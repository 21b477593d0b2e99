//! The file of the access log, and the thread that writes it.

use crate::error::GatewayError;
use flashweir_config::AccessLog;
use flashweir_core::Duration;
use flashweir_core::limits::ACCESS_LOG_QUEUE;
use flashweir_runtime::{Drain, LineQueue, line_queue};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Interval between two looks whether the file is still at its place.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval between two complaints about a file that cannot be written.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The end that takes the workers' lines.
#[derive(Clone, Debug)]
pub(crate) struct AccessLines {
    queue: LineQueue,
    lost: Arc<AtomicU64>,
}

impl AccessLines {
    /// Takes lines, and returns whether there was room for them.
    pub(super) fn offer(&self, lines: Vec<u8>) -> bool {
        self.queue.offer(lines)
    }

    /// Number of lines since the last call that could not be written.
    pub(super) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

/// Opens the file and starts its thread.
///
/// # Errors
/// [`GatewayError::AccessLog`] if the file cannot be opened.
pub(crate) fn open(config: &AccessLog) -> Result<(AccessLines, Drain), GatewayError> {
    let path = config.file.clone();
    let file = append_to(&path).map_err(|source| GatewayError::AccessLog { file: path.clone(), source })?;
    let lost = Arc::<AtomicU64>::default();
    let out =
        RotatedFile { path, file: Some(file), looked_at: Instant::now(), told_at: None, lost: lost.clone() };
    let (queue, drain) = line_queue("access-log", out, ACCESS_LOG_QUEUE);
    Ok((AccessLines { queue, lost }, drain))
}

fn append_to(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// A file that is opened again once another one, or none, is at its place.
struct RotatedFile {
    path: PathBuf,
    /// None while it cannot be opened.
    file: Option<File>,
    looked_at: Instant,
    told_at: Option<Instant>,
    lost: Arc<AtomicU64>,
}

impl RotatedFile {
    fn follow(&mut self) -> io::Result<()> {
        if self.looked_at.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked_at = Instant::now();
        let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let there = std::fs::metadata(&self.path).ok().map(place);
        let open = self.file.as_ref().and_then(|file| file.metadata().ok()).map(place);
        if there.is_none() || there != open {
            self.file = None;
            self.file = Some(append_to(&self.path)?);
        }
        Ok(())
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.follow()?;
        self.file.as_mut().ok_or(io::ErrorKind::NotFound)?.write_all(lines)
    }
}

/// A call takes whole lines. Those that cannot be written are counted: the next ones may find room.
impl Write for RotatedFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.append(lines) {
            self.lost.fetch_add(lines.iter().filter(|&&byte| byte == b'\n').count() as u64, Relaxed);
            if self.told_at.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                self.told_at = Some(Instant::now());
                tracing::warn!("access log {}: {error}; its lines are lost", self.path.display());
            }
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn rotated(path: PathBuf) -> RotatedFile {
        let file = append_to(&path).ok();
        RotatedFile { path, file, looked_at: Instant::now(), told_at: None, lost: Arc::default() }
    }

    #[test]
    fn after_a_rename_a_new_file_is_opened_and_nothing_is_lost() {
        let directory = tempfile::tempdir().expect("a folder");
        let (path, old) = (directory.path().join("access.log"), directory.path().join("access.log.1"));
        let mut log = rotated(path.clone());
        log.write_all(b"first\n").expect("never fails");
        fs::rename(&path, &old).expect("renamed");
        log.write_all(b"second\n").expect("never fails");
        log.looked_at -= LOOK_EVERY;
        log.write_all(b"third\n").expect("never fails");
        let read = |path| fs::read_to_string(path).expect("a file");
        assert_eq!((read(&old).as_str(), read(&path).as_str()), ("first\nsecond\n", "third\n"));
        assert_eq!(log.lost.load(Relaxed), 0);
    }

    #[test]
    fn lines_that_find_no_room_are_counted() {
        let mut log = rotated(PathBuf::from("/dev/full"));
        log.write_all(b"one\ntwo\n").expect("never fails");
        assert_eq!(log.lost.load(Relaxed), 2);
    }
}
