//! A core for the origin and the other cores for everything else, so that load generator and gateway take
//! none of its time.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{fs, io};

/// The cores that this process may use, divided.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    origin: CpuSet,
    others: CpuSet,
    first: usize,
}

impl Placement {
    /// The first core for the origin, the others for everything else; `None` if this process may use only
    /// one.
    #[must_use]
    pub fn divide() -> Option<Self> {
        let all = sched_getaffinity(None).ok()?;
        let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core))?;
        let (mut origin, mut others) = (CpuSet::new(), all);
        origin.set(first);
        others.unset(first);
        (others.count() > 0).then_some(Self { origin, others, first })
    }

    /// The origin's core.
    #[must_use]
    pub fn origin_core(&self) -> usize {
        self.first
    }

    /// Moves this thread, and threads and processes that it starts from now on, off the origin's core.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn leave_the_origin_its_core(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.others)?)
    }

    /// Moves a process with all its threads to the origin's core.
    ///
    /// # Errors
    /// The process is gone, or belongs to another user.
    pub fn give_the_origin_its_core(&self, process: u32) -> io::Result<()> {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let id = thread?.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
            sched_setaffinity(id, &self.origin)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_the_core_and_only_it() {
        let before = sched_getaffinity(None).unwrap();
        let Some(placement) = Placement::divide() else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                placement.leave_the_origin_its_core().unwrap();
                let now = sched_getaffinity(None).unwrap();
                assert!(!now.is_set(placement.origin_core()));
                assert_eq!(now.count() + 1, before.count());
            });
        });
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
