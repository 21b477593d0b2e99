//! One network namespace, deleted when dropped.

use std::fs::File;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::leftovers::{DIRECTORY, PREFIX};
use super::tools::{run, try_run};

#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    role: String,
    file: File,
}

impl Namespace {
    /// Makes one and starts its loopback.
    pub(super) fn new(role: &str) -> Self {
        // Tests of one process run beside one another, each with a testbed of its own.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{role}", std::process::id());
        run("ip", &["netns", "add", &name]);
        let file = File::open(format!("{DIRECTORY}/{name}"));
        let file = file.unwrap_or_else(|error| panic!("namespace {name} cannot be opened: {error}"));
        let namespace = Self { name, role: role.to_owned(), file };
        run("ip", &["-n", namespace.name(), "link", "set", "lo", "up"]);
        namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn role(&self) -> &str {
        &self.role
    }

    /// Runs `work` on a thread that lives in here: a namespace is a property of a thread, and its sockets, children and
    /// threads inherit it.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let enter = || move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network));
        let result = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter().unwrap_or_else(|error| panic!("namespace {} cannot be entered: {error}", self.name));
                work()
            });
            thread.join()
        });
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Fails only when somebody else deleted it; a test that is failing already must not be aborted for that.
        let _ = try_run("ip", &["netns", "delete", &self.name]);
    }
}
