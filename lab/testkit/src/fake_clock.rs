//! Clocks of one process that a test sets, by libfaketime between the process and the kernel.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::binary::Flashweir;
use crate::programs::skip;

/// Paths of Debian's variant for programs with threads, by architecture.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// Clocks that follow the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// The time of day alone, as when a machine's time is set.
    TimeOfDay,
    /// The monotonic clock, too, as after a machine's sleep.
    All,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct FakeClock {
    directory: TempDir,
    shift: PathBuf,
}

impl FakeClock {
    /// One that shows the real time until it is shifted, for the program at `binary`; or says loudly that the
    /// test is skipped.
    ///
    /// # Panics
    /// When no fresh directory can be made.
    #[must_use]
    pub fn require(test: &str, binary: &str, clocks: Clocks) -> Option<Self> {
        let Some(library) = LIBRARIES.iter().find(|library| Path::new(library).exists()) else {
            skip(test, "libfaketime is missing (Debian package faketime)");
            return None;
        };
        let directory = TempDir::new().expect("a fresh directory");
        let clock = Self { shift: directory.path().join("shift"), directory };
        clock.shift_s(0);
        let keeps_monotonic = u8::from(clocks == Clocks::TimeOfDay);
        // The shell becomes the program, so that signals and the process id are the program's.
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD={library} FAKETIME_NO_CACHE=1 FAKETIME_TIMESTAMP_FILE={}\n\
             export FAKETIME_DONT_FAKE_MONOTONIC={keeps_monotonic}\nexec {binary} \"$@\"\n",
            clock.shift.display(),
        );
        std::fs::write(clock.program(), script).expect("a writable directory");
        std::fs::set_permissions(clock.program(), Permissions::from_mode(0o755)).expect("a file of ours");
        Some(clock)
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("flashweir")
    }

    /// The program under this clock.
    #[must_use]
    pub fn binary(&self) -> Flashweir {
        Flashweir::new(&self.program().display().to_string())
    }

    /// Shows the real time plus `seconds`, which may be negative.
    ///
    /// # Panics
    /// When the directory cannot be written.
    pub fn shift_s(&self, seconds: i64) {
        // Renamed into its place: the library may read at any moment.
        let fresh = self.shift.with_extension("new");
        std::fs::write(&fresh, format!("{seconds:+}\n")).expect("a writable directory");
        std::fs::rename(&fresh, &self.shift).expect("a writable directory");
    }
}
