//! A directory for the pins of one process.

use std::ffi::CString;
use std::fs::{File, TryLockError};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::PinError;

/// A directory of a BPF file system: a pin for each interface, and one process at a time that has to do with
/// them, since two would give one gate different orders. The process that opened it has it until this is
/// dropped or the process ends.
#[derive(Debug)]
pub struct PinDirectory {
    path: PathBuf,
    _lock: File,
}

impl PinDirectory {
    /// Takes a directory, which is made if there is a BPF file system to make it in.
    ///
    /// # Errors
    /// [`PinError::NoBpfFiles`] where there is none, [`PinError::InUse`] while another process has it, and
    /// what the kernel says to making and opening it.
    pub fn open(path: &Path) -> Result<Self, PinError> {
        let failed = |error| PinError::Directory { directory: path.to_owned(), error };
        if !path.exists() && path.parent().is_some_and(is_bpf_files) {
            std::fs::create_dir(path).map_err(failed)?;
        }
        if !path.is_dir() || !is_bpf_files(path) {
            return Err(PinError::NoBpfFiles { directory: path.to_owned() });
        }
        let lock = File::open(path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(PinError::InUse { directory: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Pin of the gate before an interface: a file of the interface's name. Where that has a dot (`eth0.7`)
    /// the file has a colon: a BPF file system takes no dots, and no interface has a colon in its name.
    #[must_use]
    pub fn pin_of(&self, interface: &str) -> PathBuf {
        self.path.join(interface.replace('.', ":"))
    }
}

fn is_bpf_files(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: integers, for all of which zeros are a value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends in zero; both outlive the call.
    let status = unsafe { libc::statfs(name.as_ptr(), &raw mut about) };
    status == 0 && about.f_type == libc::BPF_FS_MAGIC
}
