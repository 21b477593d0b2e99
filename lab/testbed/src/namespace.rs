//! One network namespace, deleted when dropped.

use std::fs::File;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::TestbedError;
use crate::leftovers::{DIRECTORY, PREFIX};
use crate::tools::run;

#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    role: String,
    file: File,
}

impl Namespace {
    /// Makes one and starts its loopback.
    pub(crate) fn new(role: &str) -> Result<Self, TestbedError> {
        // Testbeds of one process exist beside one another.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{role}", std::process::id());
        run("ip", &["netns", "add", &name])?;
        let path = format!("{DIRECTORY}/{name}");
        let file = File::open(&path).map_err(TestbedError::kernel(path))?;
        let namespace = Self { name, role: role.to_owned(), file };
        run("ip", &["-n", namespace.name(), "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn role(&self) -> &str {
        &self.role
    }

    /// Runs `work` on a thread that lives in here: a namespace is a property of a thread, and its sockets,
    /// children and threads inherit it.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let enter = || move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network));
        let result = std::thread::scope(|scope| scope.spawn(|| enter().map(|()| work())).join());
        // A scope that ends unparks its own thread. A caller that then parks for a while would not wait at
        // all.
        std::thread::park_timeout(Duration::ZERO);
        let entered = result.unwrap_or_else(|panic| resume_unwind(panic));
        entered.map_err(|error| TestbedError::kernel(format!("namespace {}", self.name))(error.into()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Fails only when another process deleted it; a caller that is failing already must not be aborted
        // for that.
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}
