//! A child process: its output kept, signals by its id, gone when dropped.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

use crate::deadline::{eventually, until};

/// Output kept from each stream; a child that says more is read and forgotten, so that it never blocks.
const OUTPUT_BYTES: usize = 16 << 20;

/// Signal that a test sends to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: finish and stop.
    Terminate,
    /// SIGINT: as Ctrl-C.
    Interrupt,
    /// SIGHUP: reload.
    Reload,
    /// SIGKILL: gone at once, as after a crash.
    Kill,
    /// SIGSTOP: stand still, as a machine that hangs.
    Pause,
    /// SIGCONT: go on.
    Resume,
    /// SIGUSR1: as scripts that rotate logs send it.
    Rotate,
    /// SIGUSR2.
    User2,
}

/// A running child, killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdout: Output,
    stderr: Output,
}

/// Output and status of a child that ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// All it wrote on standard output.
    pub stdout: String,
    /// All it wrote on standard error.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
}

impl Finished {
    /// The exit code; `None` after a signal.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// Sends a signal to a process that a test has started, by its id; false when it is gone.
pub(crate) fn signal_process(id: u32, signal: Signal) -> bool {
    use rustix::process::Signal as Kernel;
    let signal = match signal {
        Signal::Terminate => Kernel::TERM,
        Signal::Interrupt => Kernel::INT,
        Signal::Reload => Kernel::HUP,
        Signal::Kill => Kernel::KILL,
        Signal::Pause => Kernel::STOP,
        Signal::Resume => Kernel::CONT,
        Signal::Rotate => Kernel::USR1,
        Signal::User2 => Kernel::USR2,
    };
    let id = Pid::from_raw(id.cast_signed()).expect("a child's id is positive");
    kill_process(id, signal).is_ok()
}

impl Process {
    /// Starts `program` in `directory`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        directory: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A program that a test has just written is open for writing in a child that another thread has
        // forked, until that child runs its own.
        let spawned = eventually("a program that is written", || match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => None,
            spawned => Some(spawned),
        });
        let mut child = spawned.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let stdout = Output::read(child.stdout.take().expect("stdout is piped"));
        let stderr = Output::read(child.stderr.take().expect("stderr is piped"));
        Self { name, child, stdout, stderr }
    }

    /// Runs `program` to its end.
    ///
    /// # Panics
    /// When it cannot be started or does not end within `within`.
    pub fn run(
        program: &Path,
        directory: &Path,
        within: Duration,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Finished {
        Self::start(program, directory, arguments).finish(within)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        assert!(self.try_signal(signal), "{} is gone", self.name);
    }

    /// Sends a signal; false when the process is gone.
    ///
    /// # Panics
    /// Never: a child's id is positive.
    pub fn try_signal(&self, signal: Signal) -> bool {
        signal_process(self.id(), signal)
    }

    /// Exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end within `within`.
    pub fn finish(mut self, within: Duration) -> Finished {
        let begun = Instant::now();
        let what = format!("the end of {}", self.name);
        let status = until(&what, within, || self.ended());
        eventually("the end of its output", || {
            (self.stdout.is_over() && self.stderr.is_over()).then_some(())
        });
        Finished { status, stdout: self.stdout.text(), stderr: self.stderr.text(), took: begun.elapsed() }
    }

    /// Its output on standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Memory it holds in RAM now, bytes (`VmRSS`).
    ///
    /// # Panics
    /// When the process is gone.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("a living process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a VmRSS line");
        let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number of kB");
        kibibytes << 10
    }

    /// Files and sockets it holds open now.
    ///
    /// # Panics
    /// When the process is gone.
    #[must_use]
    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("a living process").count()
    }

    /// Targets of its open files as the system names them, sorted; none when it is gone.
    fn open_file_names(&self) -> Vec<String> {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.id())).into_iter().flatten().flatten();
        let names =
            files.filter_map(|file| Some(std::fs::read_link(file.path()).ok()?.display().to_string()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let files = if std::thread::panicking() { self.open_file_names() } else { Vec::new() };
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // Captured by the test runner and shown with the failure it belongs to.
            eprintln!("---- standard error of {} ----\n{}", self.name, self.stderr.text());
            eprintln!("---- open files of {} ----\n{}", self.name, files.join(" "));
        }
    }
}

/// One stream of a child, read by its own thread.
#[derive(Clone, Debug, Default)]
struct Output(Arc<Mutex<Stream>>);

#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    over: bool,
}

impl Output {
    fn read(mut stream: impl Read + Send + 'static) -> Self {
        let output = Self::default();
        let writer = output.clone();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 16 << 10];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                writer.with(|read| {
                    let room = OUTPUT_BYTES.saturating_sub(read.bytes.len()).min(count);
                    read.bytes.extend_from_slice(&buffer[..room]);
                });
            }
            writer.with(|read| read.over = true);
        });
        output
    }

    fn text(&self) -> String {
        self.with(|read| String::from_utf8_lossy(&read.bytes).into_owned())
    }

    fn is_over(&self) -> bool {
        self.with(|read| read.over)
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Stream) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
