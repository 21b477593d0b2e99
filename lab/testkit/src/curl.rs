//! The real curl.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::message::Fields;
use crate::process::Process;
use crate::programs::require_program;

/// No single transfer of a test takes longer.
const TRANSFER_WITHIN: Duration = Duration::from_secs(60);

/// curl, found.
#[derive(Clone, Debug)]
pub struct Curl {
    program: PathBuf,
}

/// Result of a transfer.
#[derive(Clone, Debug)]
pub struct CurlOutput {
    /// curl's exit code: 0 after a whole transfer.
    pub code: i32,
    /// The status of the last response.
    pub status: u16,
    /// The HTTP version that was spoken, as curl writes it: `1.1`, `2`.
    pub version: String,
    /// The fields of all heads in a row, then the trailers.
    pub fields: Fields,
    /// The body.
    pub body: Vec<u8>,
    /// Messages of curl.
    pub stderr: String,
}

impl CurlOutput {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Curl {
    /// curl, or `None` after a loud line that names the test.
    #[must_use]
    pub fn require(test: &str) -> Option<Self> {
        Some(Self { program: require_program("curl", test)? })
    }

    /// One transfer.
    ///
    /// # Panics
    /// When curl does not end.
    pub fn get(&self, url: &str, arguments: &[&str]) -> CurlOutput {
        let directory = TempDir::new().expect("a fresh directory");
        let (body, head) = (directory.path().join("body"), directory.path().join("head"));
        let fixed = ["--silent", "--show-error", "--max-time", "45", "--noproxy", "*", "--write-out"];
        let mut all: Vec<OsString> = fixed.iter().map(OsString::from).collect();
        all.extend(["%{http_code} %{http_version}".into(), "--output".into(), body.clone().into()]);
        all.extend(["--dump-header".into(), head.clone().into()]);
        all.extend(arguments.iter().map(OsString::from));
        all.push(url.into());
        let finished = Process::run(&self.program, directory.path(), TRANSFER_WITHIN, all);
        let (status, version) = finished.stdout.split_once(' ').unwrap_or(("0", ""));
        CurlOutput {
            code: finished.code().unwrap_or(-1),
            status: status.parse().unwrap_or(0),
            version: version.to_owned(),
            fields: Fields::parse(&std::fs::read(head).unwrap_or_default()),
            body: std::fs::read(body).unwrap_or_default(),
            stderr: finished.stderr,
        }
    }
}
