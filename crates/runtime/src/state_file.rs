//! The baseline learned in quiet times, kept across restarts: a gateway that starts in the middle of a crowd
//! must not take the crowd for normal.
//!
//! One JSON document, written beside its place and renamed over it, so a reader sees the old or the new one
//! whole. A file that is truncated, of another version, or about other upstreams is ignored with one warning
//! and rewritten: learning again costs minutes, a wrong baseline costs an outage.

use crate::clock::unix_seconds_now;
use flashweir_admission::flash_crowd::Baseline;
use flashweir_core::Instant;
use flashweir_telemetry::{Happening, Outcome, Telemetry};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Counts changes of the format; another number is another format. 2: with the key under which URLs were
/// hashed.
const VERSION: u32 = 2;
/// A baseline is a few hundred numbers; a larger file is not ours.
const BYTES_MAX: u64 = 1 << 20;

/// File in which what was learned outlives the process, with the service and servers to which it belongs.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    service: String,
    upstreams: String,
    url_key: Option<UrlKey>,
}

/// The key of the hash that sorts URLs into classes. What was learned of a class is worth nothing under
/// another one, so it is kept with it; a client that knew it could put its own URLs into the class of
/// another.
pub type UrlKey = (u64, u64);

/// Reason for which a state file was not used.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// As the operating system says.
    #[error("cannot read it: {0}")]
    Read(#[source] io::Error),
    /// As the operating system says.
    #[error("cannot write it: {0}")]
    Write(#[source] io::Error),
    /// Not one of ours.
    #[error("it is larger than {BYTES_MAX} bytes")]
    TooLarge,
    /// Cut short, or changed by another program.
    #[error("it is damaged: {0}")]
    Damaged(#[source] serde_json::Error),
    /// Of an older or newer program.
    #[error("it has version {0}, this program writes version {VERSION}")]
    OtherVersion(u32),
    /// Worth nothing here.
    #[error("it was learned for another service or other upstreams")]
    OtherService,
    /// Negative, infinite or out of order.
    #[error("it holds numbers that no measurement gives")]
    Implausible,
}

impl StateFile {
    /// At `path`, for the servers `upstreams` (URLs or addresses, in any order): a baseline is worth nothing
    /// with others.
    #[must_use]
    pub fn new(path: PathBuf, service: &str, upstreams: &[String]) -> Self {
        let mut sorted = upstreams.to_vec();
        sorted.sort();
        Self { path, service: service.to_owned(), upstreams: sorted.join(" "), url_key: None }
    }

    /// The key of URL classes that is saved from now on.
    #[must_use]
    pub fn with_url_key(self, key: UrlKey) -> Self {
        Self { url_key: Some(key), ..self }
    }

    /// The key under which the URL classes of the file were learned; `None` where there is none, or no file
    /// that can be used.
    #[must_use]
    pub fn saved_url_key(&self) -> Option<UrlKey> {
        self.read().ok().flatten()?.url_key
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The baseline of an earlier run. A file that cannot be used is logged once and replaced at the next
    /// save; the remains of a write that a crash interrupted are removed. A place that cannot be written is
    /// logged now, and not only when the process ends.
    #[must_use]
    pub fn load_or_begin_anew(&self) -> Baseline {
        self.remove_leftovers();
        if let Err(error) = self.try_place() {
            let path = self.path.display();
            tracing::warn!(
                "state file {path} cannot be written, what is learned ends with this process: {error}"
            );
        }
        self.load().map(Option::unwrap_or_default).unwrap_or_else(|error| {
            let path = self.path.display();
            tracing::warn!("state file {path} is ignored, the baseline is learned again: {error}");
            Baseline::default()
        })
    }

    /// The baseline of an earlier run; `None` when there is no file.
    ///
    /// # Errors
    /// When there is a file and it cannot be used.
    pub fn load(&self) -> Result<Option<Baseline>, StateFileError> {
        Ok(self.read()?.map(|saved| saved.baseline.into()))
    }

    fn read(&self) -> Result<Option<Saved>, StateFileError> {
        let mut text = Vec::new();
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateFileError::Read(error)),
            Ok(file) => file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(StateFileError::Read)?,
        };
        if text.len() as u64 > BYTES_MAX {
            return Err(StateFileError::TooLarge);
        }
        // The version first: another version's fields need not be these.
        let Version { version } = serde_json::from_slice(&text).map_err(StateFileError::Damaged)?;
        if version != VERSION {
            return Err(StateFileError::OtherVersion(version));
        }
        let saved: Saved = serde_json::from_slice(&text).map_err(StateFileError::Damaged)?;
        if (&saved.service, &saved.upstreams) != (&self.service, &self.upstreams) {
            return Err(StateFileError::OtherService);
        }
        if !saved.baseline.is_plausible() {
            return Err(StateFileError::Implausible);
        }
        Ok(Some(saved))
    }

    /// Replaces the file in one step. Blocks for the disk: a few milliseconds every half minute, off the
    /// workers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, baseline: &Baseline) -> Result<(), StateFileError> {
        let saved = Saved {
            version: VERSION,
            service: self.service.clone(),
            upstreams: self.upstreams.clone(),
            saved_at_unix_s: unix_seconds_now(),
            url_key: self.url_key,
            baseline: baseline.into(),
        };
        let text = serde_json::to_vec_pretty(&saved).map_err(StateFileError::Damaged)?;
        self.replace(&text).map_err(StateFileError::Write)
    }

    /// As [`StateFile::save`]; counts the save, and logs a failure.
    pub fn save_or_tell(&self, now: Instant, baseline: &Baseline, telemetry: &Telemetry) {
        let outcome = match self.save(baseline) {
            Ok(()) => Outcome::Ok,
            Err(error) => {
                let message = format_args!("state file {}: {error}", self.path.display());
                telemetry.warnings().warn(now, Happening::StateFile, message);
                Outcome::Failed
            }
        };
        telemetry.control().state_writes.increment(outcome);
    }

    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Removes what processes left that ended in the middle of a write. One that runs may be writing just
    /// now: two of them share a file while one takes over from the other.
    fn remove_leftovers(&self) {
        let Some(name) = self.path.file_name().and_then(|name| name.to_str()) else { return };
        let is_leftover = |file: &str| {
            let writer = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?;
            let writer: u32 = writer.parse().ok()?;
            Some(writer != std::process::id() && !Path::new("/proc").join(writer.to_string()).exists())
        };
        for entry in fs::read_dir(self.folder()).into_iter().flatten().flatten() {
            if entry.file_name().to_str().and_then(is_leftover) == Some(true) {
                // Best effort: a file that stays is a few kilobytes.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Makes a file in its folder, and takes it away.
    fn try_place(&self) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
        let temporary = self.temporary();
        File::create(&temporary)?;
        fs::remove_file(temporary)
    }

    /// The file that is written before it takes the place of the last one.
    fn temporary(&self) -> PathBuf {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}.tmp", std::process::id()));
        PathBuf::from(temporary)
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
        let temporary = self.temporary();
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(text)?;
            // Without this a crash may leave the new name on an empty file.
            file.sync_all()
        });
        let replaced = written.and_then(|()| fs::rename(&temporary, &self.path));
        if replaced.is_err() {
            // Best effort: the error that matters is already on its way.
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    service: String,
    upstreams: String,
    saved_at_unix_s: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url_key: Option<UrlKey>,
    baseline: SavedBaseline,
}

/// The file's own words for a [`Baseline`]: the planner's type stays free of formats.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedBaseline {
    unique_offered_rps: Option<f64>,
    fast_rate_bytes_per_s: Option<f64>,
    fast_score: Option<f64>,
    latency_by_class_s: Vec<(u16, f64)>,
}

impl SavedBaseline {
    fn is_plausible(&self) -> bool {
        let single = [self.unique_offered_rps, self.fast_rate_bytes_per_s, self.fast_score];
        let latencies = self.latency_by_class_s.iter().map(|&(_, seconds)| seconds);
        let ordered = self.latency_by_class_s.windows(2).all(|pair| pair[0].0 < pair[1].0);
        ordered
            && single.into_iter().flatten().chain(latencies).all(|value| value.is_finite() && value >= 0.0)
    }
}

impl From<&Baseline> for SavedBaseline {
    fn from(baseline: &Baseline) -> Self {
        Self {
            unique_offered_rps: baseline.unique_offered_rps,
            fast_rate_bytes_per_s: baseline.fast_rate_bytes_per_s,
            fast_score: baseline.fast_score,
            latency_by_class_s: baseline.latency_by_class_s.clone(),
        }
    }
}

impl From<SavedBaseline> for Baseline {
    fn from(saved: SavedBaseline) -> Self {
        Self {
            unique_offered_rps: saved.unique_offered_rps,
            fast_rate_bytes_per_s: saved.fast_rate_bytes_per_s,
            fast_score: saved.fast_score,
            latency_by_class_s: saved.latency_by_class_s,
        }
    }
}

#[cfg(test)]
#[path = "state_file_tests.rs"]
mod tests;
