//! Cost of programs and maps in the kernel, by the kernel's own account of them.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;
use std::{fs, io};

use libbpf_rs::{MapCore as _, MapHandle, libbpf_sys};

/// While it lives the kernel measures every run of every program of this machine, which costs each some tens
/// of nanoseconds: two readings of a clock, one of which is part of what it measures.
#[derive(Debug)]
pub struct RunTimes {
    _kept_open: OwnedFd,
}

impl RunTimes {
    /// Begins to measure (BPF_ENABLE_STATS; Linux 5.8 and later). It ends when this is dropped or its process
    /// ends.
    ///
    /// # Errors
    /// When this process may not (it takes CAP_SYS_ADMIN), or this kernel cannot.
    pub fn measure() -> io::Result<Self> {
        // SAFETY: it takes a number and touches no memory of ours.
        let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if descriptor < 0 {
            return Err(io::Error::from_raw_os_error(-descriptor));
        }
        // SAFETY: the kernel has just made it for this process, and no other owner exists.
        Ok(Self { _kept_open: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }
}

/// Programs and maps in the kernel that a process holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Each program once.
    pub programs: Vec<ProgramRuns>,
    /// Each map once.
    pub maps: Vec<MapMemory>,
}

/// Runs of a program while [`RunTimes`] were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its number in the kernel.
    pub id: u32,
    /// Hook point at which it runs.
    pub hook_point: HookPoint,
    /// Number of runs.
    pub runs: u64,
    /// Time of all runs together.
    pub took: Duration,
}

/// Hook point of the kernel at which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// Before the stack: XDP.
    Xdp,
    /// At a queue: tc.
    Tc,
    /// Elsewhere.
    Other,
}

/// Memory of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapMemory {
    /// Its name.
    pub name: String,
    /// Maximum number of entries.
    pub entries_most: u32,
    /// Kernel memory, bytes.
    pub bytes: u64,
}

/// Programs and maps that a process holds, by the kernel's account of its descriptors. Reads a small file for
/// each of them.
///
/// # Errors
/// When there is no such process, or this one may not look at it.
pub fn held_by(process: u32) -> io::Result<Holdings> {
    let mut holdings = Holdings::default();
    let mut maps: Vec<u32> = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/fdinfo"))? {
        // A descriptor may be closed between two looks.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        if let Some(program) = program_of(&text)
            && holdings.programs.iter().all(|known| known.id != program.id)
        {
            holdings.programs.push(program);
        }
        if let Some(id) = field(&text, "map_id").filter(|id| !maps.contains(id)) {
            maps.push(id);
            // A map may go between two looks as well.
            holdings.maps.extend(MapHandle::from_map_id(id).ok().and_then(|map| memory_of(&map)));
        }
    }
    Ok(holdings)
}

/// Bytes of kernel memory that an open map takes.
pub(crate) fn map_bytes(map: BorrowedFd<'_>) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_raw_fd()))?;
    field(&text, "memlock").ok_or_else(|| io::Error::other("the kernel does not say how large a map is"))
}

fn memory_of(map: &MapHandle) -> Option<MapMemory> {
    let name = map.name().to_string_lossy().into_owned();
    Some(MapMemory { name, entries_most: map.max_entries(), bytes: map_bytes(map.as_fd()).ok()? })
}

/// Numbers of linux/bpf.h.
const SCHED_CLS: u32 = 3;
const XDP: u32 = 6;

/// None of a descriptor that is no program's. A link's names a program too, but not its runs.
fn program_of(fdinfo: &str) -> Option<ProgramRuns> {
    let hook_point = match field(fdinfo, "prog_type")? {
        SCHED_CLS => HookPoint::Tc,
        XDP => HookPoint::Xdp,
        _ => HookPoint::Other,
    };
    let took = Duration::from_nanos(field(fdinfo, "run_time_ns")?);
    Some(ProgramRuns { id: field(fdinfo, "prog_id")?, hook_point, runs: field(fdinfo, "run_cnt")?, took })
}

fn field<T: std::str::FromStr>(fdinfo: &str, name: &str) -> Option<T> {
    let value = fdinfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Direction, Observer};

    #[test]
    fn a_descriptor_is_a_program_only_with_its_runs() {
        let text = "pos:\t0\nprog_type:\t6\nmemlock:\t4096\nprog_id:\t7\nrun_time_ns:\t900\nrun_cnt:\t3\n";
        let expected =
            ProgramRuns { id: 7, hook_point: HookPoint::Xdp, runs: 3, took: Duration::from_nanos(900) };
        assert_eq!(program_of(text), Some(expected));
        assert_eq!(program_of("link_type:\txdp\nprog_id:\t7\n"), None);
        assert_eq!(field::<u32>("map_id:\t12\n", "map"), None);
    }

    /// Goal: the kernel's account reaches us. Method: this process holds an observer and runs its program
    /// often.
    #[test]
    fn a_process_is_told_what_it_holds() {
        const RUNS: u32 = 20_000;
        let test = "what programs in the kernel cost";
        let observer = match Observer::load(2_048) {
            Ok(observer) => observer,
            Err(error) if error.is_unavailable() => return flashweir_testkit::skip(test, &error.to_string()),
            Err(error) => panic!("{error}"),
        };
        let times = match RunTimes::measure() {
            Ok(times) => times,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return flashweir_testkit::skip(test, &error.to_string());
            }
            Err(error) => panic!("{error}"),
        };
        observer.try_frame(Direction::ToServer, &[0; 60], RUNS).expect("a run");
        let held = held_by(std::process::id()).expect("ourselves");
        drop(times);
        let ran =
            held.programs.iter().find(|it| it.hook_point == HookPoint::Tc && it.runs >= u64::from(RUNS));
        assert!(ran.is_some_and(|it| !it.took.is_zero()), "{held:?}");
        let flows = held.maps.iter().find(|map| map.name == "flows" && map.entries_most == 2_048);
        assert!(flows.is_some_and(|map| map.bytes > 2_048 * 84), "{held:?}");
        let ids = held.programs.iter().map(|program| program.id);
        assert_eq!(ids.collect::<std::collections::HashSet<_>>().len(), held.programs.len());
    }
}
