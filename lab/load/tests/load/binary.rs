//! The binary, and an origin to load.

use flashweir_testbed::origin::{Cold, Settings};
use std::num::NonZeroUsize;
use std::process::{Command, Output, Stdio};

/// An origin on a free port, in this process; ended when dropped.
pub(crate) struct Origin {
    _origin: flashweir_testbed::origin::Origin,
    pub(crate) url: String,
}

impl Origin {
    /// One worker, work of this many milliseconds for each request, and answers of ten bytes.
    pub(crate) fn start(work_ms: f64) -> Self {
        let settings = Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            workers: NonZeroUsize::MIN,
            work_ms,
            wait_ms: 0.0,
            cold: Cold::default(),
            body_bytes: 10,
            iterations_per_ms: None,
        };
        let origin = flashweir_testbed::origin::Origin::start(settings).expect("a free port");
        let url = format!("http://{}", origin.address());
        Self { _origin: origin, url }
    }
}

/// `flashweir load` with these words, to its end.
pub(crate) fn load(options: &[&str]) -> Output {
    command(options).output().unwrap()
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashweir-load"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
