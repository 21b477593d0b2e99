//! Protections between the crowd and the origin: started here, on loopback, on one thread, and ended by id.

pub(crate) mod envoy;
pub(crate) mod flashweir;
pub(crate) mod haproxy;
pub(crate) mod nginx;

use flashweir_testkit::{Flashweir, Process, require_program, reserve_address};
use std::ffi::OsStr;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time within which a server has to listen.
const START_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two looks at whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A protection with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Nothing,
    Nginx(nginx::Setting),
    Haproxy(haproxy::Setting),
    Envoy,
    Flashweir,
    FlashweirClasses,
}

/// The programs; those of other projects may be missing.
pub(crate) struct Tools {
    pub(crate) flashweir: Flashweir,
    nginx: Option<PathBuf>,
    haproxy: Option<PathBuf>,
    envoy: Option<PathBuf>,
}

/// A protection that listens; ended when dropped.
pub(crate) struct Standing {
    pub(crate) address: SocketAddr,
    _process: Option<(Process, TempDir)>,
}

impl Tools {
    pub(crate) fn find() -> Self {
        let find = |name| require_program(name, "a column of the comparison");
        Self {
            flashweir: Flashweir::new(env!("CARGO_BIN_EXE_flashweir")),
            nginx: find("nginx"),
            haproxy: find("haproxy"),
            envoy: envoy::installed().or_else(|| find("envoy")),
        }
    }
}

impl Kind {
    /// Its settings in the words of its configuration; empty where there are none.
    pub(crate) fn setting(&self) -> String {
        match self {
            Self::Nginx(setting) => setting.to_string(),
            Self::Haproxy(setting) => setting.to_string(),
            Self::Nothing | Self::Envoy | Self::Flashweir | Self::FlashweirClasses => String::new(),
        }
    }

    /// Starts it before `origin`, or says why it cannot.
    pub(crate) fn start(&self, tools: &Tools, origin: SocketAddr) -> Result<Standing, String> {
        let there = |name: &str, path: &Option<PathBuf>| {
            path.clone().ok_or_else(|| format!("the program `{name}` is missing"))
        };
        match self {
            Self::Nothing => Ok(Standing { address: origin, _process: None }),
            Self::Nginx(setting) => nginx::start(&there("nginx", &tools.nginx)?, origin, setting),
            Self::Haproxy(setting) => haproxy::start(&there("haproxy", &tools.haproxy)?, origin, setting),
            Self::Envoy => envoy::start(&there("envoy", &tools.envoy)?, origin),
            Self::Flashweir => flashweir::start(&tools.flashweir, origin),
            Self::FlashweirClasses => flashweir::start_with_classes(&tools.flashweir, origin),
        }
    }
}

/// A folder with a configuration file in it, and an address to listen at.
struct Place {
    directory: TempDir,
    address: SocketAddr,
}

impl Place {
    fn new() -> Self {
        Self { directory: TempDir::new().expect("a fresh directory"), address: reserve_address() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a writable directory");
        path
    }

    /// Starts a program that listens at the address.
    fn start(self, program: &Path, arguments: &[&OsStr]) -> Result<Standing, String> {
        let process = Process::start(program, self.path(), arguments);
        self.standing(process)
    }

    fn standing(self, mut process: Process) -> Result<Standing, String> {
        let deadline = Instant::now() + START_WITHIN;
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = process.ended() {
                let said = process.stderr();
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(format!("it ended at its start ({status}): {last}"));
            }
            if Instant::now() >= deadline {
                return Err(format!("it did not listen within {} s", START_WITHIN.as_secs()));
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        Ok(Standing { address: self.address, _process: Some((process, self.directory)) })
    }
}
