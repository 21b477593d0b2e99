//! A compiled object and the kernel: loading it, finding its maps, running a program on a packet that no
//! client sent.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::{MapCore, MapHandle, Object, ObjectBuilder, OpenObject, ProgramInput, ProgramMut};

use crate::signals::without_signals;

/// Reason for which a program does not run in this kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Too few rights.
    #[error("programs in the kernel need root, or the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON")]
    NotPermitted,
    /// A kernel without BPF.
    #[error("this kernel was built without programs in the kernel (CONFIG_BPF_SYSCALL)")]
    NoBpf,
    /// A kernel that lacks what the programs use.
    #[error("programs in the kernel need Linux {OLDEST} or newer; this is {0}")]
    TooOld(String),
    /// A kernel whose checks the program does not pass.
    #[error("this kernel does not take the program: {0}")]
    NotTaken(libbpf_rs::Error),
    /// The object lacks something: the build and this code do not belong together.
    #[error("the compiled object has no {0}")]
    Missing(&'static str),
    /// A map cannot be read or written.
    #[error("map {map}: {error}")]
    Map {
        /// Its name.
        map: &'static str,
        /// The kernel's error.
        error: libbpf_rs::Error,
    },
    /// This process has no room for one more descriptor.
    #[error("no descriptor for the program: {0}")]
    NoDescriptor(#[from] std::io::Error),
    /// A test run was refused.
    #[error("the program cannot be run on this packet: {0}")]
    NotRun(libbpf_rs::Error),
}

impl LoadError {
    /// Returns whether this machine or this user simply cannot: what a test that needs a program in the
    /// kernel is skipped for.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::NotPermitted | Self::NoBpf | Self::TooOld(_))
    }
}

/// Exists where the kernel knows the system call bpf(2).
const SETTING_OF_BPF: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
/// The oldest kernel that has all helpers the programs call (`bpf_xdp_store_bytes`).
const OLDEST: &str = "5.18";

/// Result of a program's run on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRun {
    /// Its return value.
    pub verdict: u32,
    /// The packet afterwards.
    pub packet: Vec<u8>,
    /// Time of one run, averaged by the kernel over the repetitions.
    pub took: Duration,
}

/// A loaded object. Its programs and maps are gone when it is dropped and nothing else holds them.
#[derive(Debug)]
pub(crate) struct Program {
    object: Object,
}

impl Program {
    /// Loads a compiled object after `prepare` had its chance to change what is fixed once loaded.
    pub(crate) fn load(
        compiled: &[u8],
        prepare: impl FnOnce(&mut OpenObject) -> Result<(), LoadError>,
    ) -> Result<Self, LoadError> {
        // libbpf prints its opinion of a kernel on standard error, at length; the caller gets an error of one
        // line instead. In tests it may print.
        if !cfg!(test) {
            libbpf_rs::set_print(None);
        }
        let mut open = ObjectBuilder::default().open_memory(compiled).map_err(LoadError::NotTaken)?;
        prepare(&mut open)?;
        let object = without_signals(|| open.load()).map_err(|error| match release() {
            _ if !Path::new(SETTING_OF_BPF).exists() => LoadError::NoBpf,
            Some(release) if is_too_old(&release) => LoadError::TooOld(release),
            _ if !may_load() => LoadError::NotPermitted,
            _ => LoadError::NotTaken(error),
        })?;
        Ok(Self { object })
    }

    /// A map by its name; it lives as long as any handle does.
    pub(crate) fn map(&self, name: &'static str) -> Result<MapHandle, LoadError> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or(LoadError::Missing(name))?;
        MapHandle::try_from(&map).map_err(|error| LoadError::Map { map: name, error })
    }

    /// A program's descriptor, to attach it.
    pub(crate) fn descriptor(&self, name: &'static str) -> Result<OwnedFd, LoadError> {
        Ok(self.program(name)?.as_fd().try_clone_to_owned()?)
    }

    /// Runs a program `times` on copies of a frame, without any interface (BPF_PROG_TEST_RUN).
    pub(crate) fn run(&self, name: &'static str, frame: &[u8], times: u32) -> Result<PacketRun, LoadError> {
        let program = self.program(name)?;
        let mut packet = vec![0; PACKET_BYTES];
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut packet),
            repeat: times,
            ..ProgramInput::default()
        };
        let output = program.test_run(input).map_err(LoadError::NotRun)?;
        let (verdict, took) = (output.return_value, output.duration);
        let length = output.data.map_or(0, |data| data.len());
        packet.truncate(length);
        Ok(PacketRun { verdict, packet, took })
    }

    fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, LoadError> {
        self.object.progs_mut().find(|program| program.name() == name).ok_or(LoadError::Missing(name))
    }
}

/// Room for what a program makes of a packet: a page, more than the kernel takes in a test run.
const PACKET_BYTES: usize = 4_096;

/// The running kernel's release, as `6.1.0-18-amd64`.
fn release() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.trim().to_owned())
}

fn is_too_old(release: &str) -> bool {
    numbers(release) < numbers(OLDEST)
}

/// The first two numbers of a release; zeros where there are none.
fn numbers(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Returns whether this process has the capabilities it takes (capability(7): numbers 39, 38 and 12, or 21
/// for all).
fn may_load() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const ALL: u64 = 1 << 39 | 1 << 38 | 1 << 12;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let effective = u64::from_str_radix(effective.trim(), 16).unwrap_or_default();
    effective & ALL == ALL || effective & (SYS_ADMIN | 1 << 12) == SYS_ADMIN | 1 << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert!(is_too_old("5.4.0-216-generic") && is_too_old("4.19") && is_too_old("nonsense"));
        assert!(!is_too_old("5.18") && !is_too_old("6.1.0-18-amd64") && !is_too_old("10.0"));
    }
}
