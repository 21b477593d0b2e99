//! Reads the accounts of a control group, of a process with its descendants, or of the machine.

use crate::account::{self, MachineCpu, Pressure, Sockets, ThreadTime};
use crate::meter::Reading;
use flashweir_core::limits::{AGENT_FILE_BYTES, AGENT_PROCESSES, AGENT_SOCKET_BYTES, AGENT_THREADS};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Readings between two searches for a service's processes: workers of a server are seldom replaced.
const PROCESSES_EVERY: u32 = 5;
/// Readings between two of the tables of sockets: the kernel walks all sockets of the machine for one, 5 to
/// 10 ms with some ten thousand.
const SOCKETS_EVERY: u32 = 5;
/// Mount point of the unified hierarchy of control groups on most systems.
const USUAL_MOUNT: &str = "/sys/fs/cgroup";

/// Scope of the measurements: the processes whose accounts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasuredScope {
    /// Everything on the machine.
    Machine,
    /// A process and its descendants.
    Process(u32),
    /// A control group (version 2): a directory, or its path below the hierarchy's root.
    Group(PathBuf),
}

/// Reason for which there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no such process.
    #[error("there is no process {0}; expected the id of a running one")]
    NoProcess(u32),
    /// There is no such control group.
    #[error("{} is not a control group of version 2: it has no cpu.stat", .0.display())]
    NoGroup(PathBuf),
    /// The kernel's accounts are not where they should be.
    #[error("{0} cannot be read: this needs Linux with /proc")]
    NoAccounts(&'static str),
}

/// Reads the accounts of one scope.
#[derive(Debug)]
pub struct Source {
    scope: MeasuredScope,
    /// The directory of the control group whose pressure and quota hold; none for the whole machine's.
    group: Option<PathBuf>,
    port: Option<u16>,
    processes: Vec<u32>,
    sockets: Option<Sockets>,
    readings: u32,
}

impl Source {
    /// Finds what is in the scope. `port` is where the service listens, if what waits there is of interest.
    ///
    /// # Errors
    /// [`SourceError`] when it is not there.
    pub fn open(scope: MeasuredScope, port: Option<u16>) -> Result<Self, SourceError> {
        let group = match &scope {
            MeasuredScope::Machine => None,
            MeasuredScope::Process(id) => {
                let of_process = text(&process_file(*id, "cgroup")).ok_or(SourceError::NoProcess(*id))?;
                // The root's accounts are the machine's.
                let path = account::unified_group(&of_process).filter(|path| *path != "/");
                path.map(group_directory).filter(|directory| directory.join("cpu.stat").exists())
            }
            MeasuredScope::Group(path) => {
                let is_group = |directory: &PathBuf| directory.join("cpu.stat").exists();
                let below = path.strip_prefix("/").unwrap_or(path);
                let places = [path.clone(), group_directory(&below.to_string_lossy())];
                let found = places.into_iter().find(is_group);
                Some(found.ok_or_else(|| SourceError::NoGroup(path.clone()))?)
            }
        };
        let mut source = Self { scope, group, port, processes: Vec::new(), sockets: None, readings: 0 };
        source.read()?;
        Ok(source)
    }

    /// Reads all accounts: some twenty files, and one for each thread.
    ///
    /// # Errors
    /// [`SourceError`] when the scope's processes are gone.
    pub fn read(&mut self) -> Result<Reading, SourceError> {
        if self.readings.is_multiple_of(PROCESSES_EVERY) {
            self.processes = self.find_processes();
        }
        if self.readings.is_multiple_of(SOCKETS_EVERY) {
            self.sockets = self.port.map(sockets);
        }
        self.readings = self.readings.wrapping_add(1);
        let machine = machine_cpu()?;
        let group = self.group.as_deref();
        let of_group = |name: &str| text(&group?.join(name));
        let cpu = match &self.scope {
            MeasuredScope::Group(path) => {
                let stat = of_group("cpu.stat").and_then(|text| account::group_cpu(&text));
                Some(stat.ok_or_else(|| SourceError::NoGroup(path.clone()))?)
            }
            MeasuredScope::Process(id) if !process_file(*id, "stat").exists() => {
                return Err(SourceError::NoProcess(*id));
            }
            _ => None,
        };
        Ok(Reading {
            machine,
            group: cpu,
            quota: of_group("cpu.max").and_then(|text| account::quota(&text)),
            threads: self.threads(),
            runnable: text(Path::new("/proc/loadavg")).and_then(|text| account::runnable(&text)),
            memory: self.memory(),
            cpu_pressure: self.pressure("cpu"),
            memory_pressure: self.pressure("memory"),
            disk_pressure: self.pressure("io"),
            sockets: self.sockets,
        })
    }

    fn pressure(&self, resource: &str) -> Option<Pressure> {
        let of_group =
            self.group.as_ref().and_then(|group| text(&group.join(format!("{resource}.pressure"))));
        let text = of_group.or_else(|| text(&Path::new("/proc/pressure").join(resource)))?;
        account::pressure(&text)
    }

    /// In use, and what there is.
    fn memory(&self) -> Option<(u64, u64)> {
        let of_group = |name: &str| account::number(&text(&self.group.as_ref()?.join(name))?);
        let meminfo = text(Path::new("/proc/meminfo"));
        let (all, available) = account::machine_memory(&meminfo?)?;
        let limit = of_group("memory.max").map_or(all, |limit| limit.min(all));
        let used = match &self.scope {
            MeasuredScope::Machine => Some(all.saturating_sub(available)),
            MeasuredScope::Group(_) => of_group("memory.current"),
            MeasuredScope::Process(_) => {
                let resident = |id: &u32| account::resident_bytes(&text(&process_file(*id, "statm"))?);
                Some(self.processes.iter().filter_map(resident).sum())
            }
        };
        // A group without separate memory accounts: the machine's.
        Some(used.map_or((all.saturating_sub(available), all), |used| (used, limit)))
    }

    fn find_processes(&self) -> Vec<u32> {
        let mut processes = match (&self.scope, &self.group) {
            (MeasuredScope::Process(id), _) => vec![*id],
            (MeasuredScope::Group(_), Some(group)) => {
                let text = text(&group.join("cgroup.procs")).unwrap_or_default();
                return text.lines().filter_map(|line| line.parse().ok()).take(AGENT_PROCESSES).collect();
            }
            _ => return Vec::new(),
        };
        let mut next = 0;
        while let Some(&parent) = processes.get(next) {
            next += 1;
            for thread in numbered(&process_file(parent, "task")) {
                let children = text(&process_file(parent, "task").join(thread.to_string()).join("children"));
                let children = children.unwrap_or_default();
                let room = AGENT_PROCESSES - processes.len();
                processes.extend(children.split(' ').filter_map(|id| id.parse::<u32>().ok()).take(room));
            }
        }
        processes
    }

    /// The first threads of all processes, in the order of their ids.
    fn threads(&self) -> Vec<ThreadTime> {
        let mut threads = Vec::new();
        for process in &self.processes {
            let tasks = process_file(*process, "task");
            for id in numbered(&tasks) {
                if threads.len() == AGENT_THREADS {
                    break;
                }
                let text = text(&tasks.join(id.to_string()).join("schedstat"));
                threads.extend(text.and_then(|text| account::thread_time(id, &text)));
            }
        }
        threads.sort_unstable_by_key(|thread| thread.id);
        threads
    }
}

fn machine_cpu() -> Result<MachineCpu, SourceError> {
    let text = text(Path::new("/proc/stat"));
    text.and_then(|text| account::machine_cpu(&text)).ok_or(SourceError::NoAccounts("/proc/stat"))
}

fn sockets(port: u16) -> Sockets {
    let table = |name: &str| {
        let file = File::open(Path::new("/proc/net").join(name)).ok();
        let lines = file.into_iter().flat_map(|file| BufReader::new(file.take(AGENT_SOCKET_BYTES)).lines());
        account::sockets(lines.map_while(Result::ok), port)
    };
    table("tcp").and(table("tcp6"))
}

fn process_file(id: u32, name: &str) -> PathBuf {
    ["/proc", &id.to_string(), name].iter().collect()
}

/// The directory of a group, by its path in the hierarchy.
fn group_directory(path: &str) -> PathBuf {
    let mounts = text(Path::new("/proc/mounts")).unwrap_or_default();
    let mount = account::unified_mount(&mounts).unwrap_or(USUAL_MOUNT);
    Path::new(mount).join(path.trim_start_matches('/'))
}

/// The entries of a directory that are numbers, at most as many as there may be threads.
fn numbered(directory: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(AGENT_THREADS).collect()
}

fn text(path: &Path) -> Option<String> {
    text_within(path, AGENT_FILE_BYTES)
}

/// The beginning of a file; none if it cannot be read.
fn text_within(path: &Path, bytes_max: usize) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_this_machine_have_accounts() {
        let mut own =
            Source::open(MeasuredScope::Process(std::process::id()), None).expect("a running process");
        let reading = own.read().expect("accounts");
        assert!(
            !reading.threads.is_empty() && reading.memory.is_some_and(|(used, all)| 0 < used && used < all)
        );
        let mut machine = Source::open(MeasuredScope::Machine, Some(1)).expect("a machine");
        let reading = machine.read().expect("accounts");
        assert!(reading.threads.is_empty() && reading.machine.idle_ticks > 0);
        assert_eq!(reading.sockets.map(|sockets| sockets.open), Some(0));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = |scope| Source::open(scope, None).expect_err("nothing there").to_string();
        // Above the largest process id.
        assert_eq!(
            error(MeasuredScope::Process(1 << 30)),
            "there is no process 1073741824; expected the id of a running one"
        );
        let directory = tempfile::tempdir().expect("a directory");
        let group = directory.path().join("shop");
        let expected = format!("{} is not a control group of version 2: it has no cpu.stat", group.display());
        assert_eq!(error(MeasuredScope::Group(group)), expected);
    }

    /// Goal: a group's files are read. Method: a directory with such files.
    #[test]
    fn a_group_is_read_from_its_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("cpu.stat", "usage_usec 900\nthrottled_usec 7\n"),
            ("cpu.max", "50000 100000\n"),
            ("memory.current", "1000\n"),
            ("memory.max", "4000\n"),
            ("cgroup.procs", ""),
            ("io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=55\n"),
        ] {
            std::fs::write(directory.path().join(name), text).expect("a writable directory");
        }
        let mut source =
            Source::open(MeasuredScope::Group(directory.path().to_owned()), None).expect("a group");
        let reading = source.read().expect("accounts");
        assert_eq!(reading.group.map(|group| (group.usage_us, group.throttled_us)), Some((900, 7)));
        assert_eq!((reading.quota, reading.memory), (Some(0.5), Some((1_000, 4_000))));
        assert_eq!(reading.disk_pressure.map(|pressure| pressure.some_us), Some(55));
        std::fs::remove_file(directory.path().join("cpu.stat")).expect("a file");
        assert!(matches!(source.read(), Err(SourceError::NoGroup(_))), "gone");
    }
}
