//! The binary, and an origin to load.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// An origin on a free port; ended when dropped.
pub(crate) struct Origin {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Origin {
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut child = command(&["origin", "--listen", "127.0.0.1:0"]).args(options).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
        let url = url.to_owned();
        Self { child, url }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `flashweir load` with these words, to its end.
pub(crate) fn load(options: &[&str]) -> Output {
    command(&["load"]).args(options).output().unwrap()
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashweir"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
