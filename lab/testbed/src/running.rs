//! A program that runs in a namespace, ended when dropped.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running child, killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts it in a separate process group: Ctrl-C is for the program that made the testbed, which then
    /// ends its children itself.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).stdin(Stdio::null()).spawn()? })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if it has ended.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
