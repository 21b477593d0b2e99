//! The origin, the gateway and their neighbours as separate processes, so that the system accounts for each:
//! the origin is this same program, all others are `flashweir`.

use anyhow::{Context, bail};
use flashweir_config::command::program::Program;
use flashweir_testbed::origin::account::OriginMeter;
use flashweir_testbed::reserve_address;
use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time within which a child has to answer.
const START_WITHIN: Duration = Duration::from_secs(10);
/// State file of the demo's gateway, in the demo's own directory.
const STATE_FILE: &str = "gateway-baseline.json";
/// Time within which a child has to end its own children.
const OBEYS_WITHIN: Duration = Duration::from_secs(5);
/// Processor time of a request to an origin that only waits, milliseconds.
const HARDLY_ANY_MS: &str = "0.01";
/// Pause between two looks at whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Every child of the demo, so that every end of the demo (its own, an error, a signal) can end them all.
#[derive(Clone, Default)]
pub(crate) struct Family(Arc<Mutex<Vec<Member>>>);

impl Family {
    /// Ends every child still there, by its own id. Safe to call at any time and more than once; while the
    /// answer is kept, no new child can be started.
    pub(crate) fn end_all(&self) -> impl Sized + '_ {
        let mut members = self.members();
        members.drain(..).for_each(Member::end);
        members
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        // A panic elsewhere must not keep children alive.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a child. It belongs to the family before the family can be asked to end.
    fn start(&self, command: &mut Command, ending: Ending) -> std::io::Result<u32> {
        let mut members = self.members();
        let child = command.spawn()?;
        let id = child.id();
        members.push(Member { child, ending });
        Ok(id)
    }

    fn end_one(&self, id: u32) {
        let mut members = self.members();
        if let Some(index) = members.iter().position(|member| member.child.id() == id) {
            members.swap_remove(index).end();
        }
    }

    fn exited(&self, id: u32) -> Option<ExitStatus> {
        let mut members = self.members();
        members
            .iter_mut()
            .find(|member| member.child.id() == id)
            .and_then(|member| member.child.try_wait().ok().flatten())
    }
}

/// Way to end a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Killed,
    /// Asked, for it has children too; killed where it does not obey.
    Asked,
}

struct Member {
    child: Child,
    ending: Ending,
}

impl Member {
    /// Errors in here mean that the child is gone already, which is the goal.
    fn end(mut self) {
        if self.ending == Ending::Asked && matches!(self.child.try_wait(), Ok(None)) {
            if let Some(id) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            }
            let deadline = Instant::now() + OBEYS_WITHIN;
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::park_timeout(LOOK_EVERY);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running origin; ended when dropped.
pub(crate) struct Origin {
    process: Process,
    address: SocketAddr,
}

impl Origin {
    /// Starts one worker that does `work_ms` of real work for each request, `iterations_per_ms` being what a
    /// millisecond is, and waits until it answers. What it has to say goes to `origin.log` in `directory`.
    pub(crate) fn start(
        family: &Family,
        work_ms: f64,
        iterations_per_ms: f64,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let work = ["--work-ms", &work_ms.to_string(), "--iterations-per-ms", &iterations_per_ms.to_string()];
        Self::start_with(family, &work, directory)
    }

    /// The same, of one worker that is held for `wait_ms` by each request without working, as by a database:
    /// what else runs on the machine hardly changes its capacity.
    pub(crate) fn start_waiting(family: &Family, wait_ms: f64, directory: &Path) -> anyhow::Result<Self> {
        let work = ["--work-ms", HARDLY_ANY_MS, "--wait-ms", &wait_ms.to_string()];
        Self::start_with(family, &work, directory)
    }

    fn start_with(family: &Family, work: &[&str], directory: &Path) -> anyhow::Result<Self> {
        let address = reserve_address()?;
        let listen = address.to_string();
        let arguments =
            ["origin", "--listen", &listen, "--workers", "1"].into_iter().chain(work.iter().copied());
        let name = Name { role: "origin", log: directory.join("origin.log") };
        let process = Process::start(family, &own_program()?, name, arguments)?;
        process.wait_for(address)?;
        Ok(Self { process, address })
    }

    /// The page the crowd wants.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/work", self.address)
    }

    /// Listening address.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Number of requests that it has completed; asking takes none of its workers.
    pub(crate) fn completed(&self, within: Duration) -> anyhow::Result<u64> {
        let answer = super::http::get(self.address, "/completed", within)?;
        answer.trim().parse().context("the origin's count is no number")
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id
    }

    /// Reads what it does with its time.
    pub(crate) fn meter(&self) -> OriginMeter {
        OriginMeter::new(self.process.id, self.address)
    }

    /// As `upstream.urls` wants it.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A running gateway in front of an origin; ended when dropped.
pub(crate) struct Gateway {
    process: Process,
    address: SocketAddr,
    /// Address of its status.
    pub(crate) admin: SocketAddr,
}

impl Gateway {
    /// Starts `flashweir run` with nothing but its upstream tuned, and waits until it accepts connections.
    ///
    /// Its output goes to `gateway.log` in `directory`, and its baseline to a file there
    /// that is not read: each demo learns from the start.
    pub(crate) fn start(family: &Family, origin: &Origin, directory: &Path) -> anyhow::Result<Self> {
        Self::start_with(family, origin, directory, None)
    }

    /// The same, with a configuration file besides.
    pub(crate) fn start_with(
        family: &Family,
        origin: &Origin,
        directory: &Path,
        config: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let (address, admin) = (reserve_address()?, reserve_address()?);
        let state_file = directory.join(STATE_FILE);
        // Not there is how it should be; what cannot be removed belongs to another upstream and is ignored.
        let _ = fs::remove_file(&state_file);
        let arguments = [
            "run",
            "--upstream",
            &origin.base_url(),
            "--listen",
            &address.to_string(),
            "--admin",
            &admin.to_string(),
            "--state-file",
        ];
        let config = config.into_iter().flat_map(|file| [OsStr::new("--config"), file.as_os_str()]);
        let arguments = arguments.iter().map(OsStr::new).chain([state_file.as_os_str()]).chain(config);
        let name = Name { role: "gateway", log: directory.join("gateway.log") };
        let process = Process::start(family, &Program::Flashweir.find()?, name, arguments)?;
        process.wait_for(admin)?;
        process.wait_for(address)?;
        Ok(Self { process, address, admin })
    }

    /// Starts one named `name` with these sections of a configuration, as [`start`](Self::start) does.
    pub(crate) fn start_configured(
        family: &Family,
        name: &'static str,
        sections: &str,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let (address, admin) = (reserve_address()?, reserve_address()?);
        let state = format!("{name}-baseline.json");
        let _ = fs::remove_file(directory.join(&state));
        let file = directory.join(format!("{name}.toml"));
        let text = format!(
            "[gateway]\nname = \"{name}\"\n[listen]\naddress = \"{address}\"\n[admin]\naddress = \"{admin}\"\n\
             [state]\nfile = \"{state}\"\n{sections}"
        );
        fs::write(&file, text).with_context(|| format!("{}: cannot be written", file.display()))?;
        let log = directory.join(format!("{name}.log"));
        let arguments = [OsStr::new("run"), OsStr::new("--config"), file.as_os_str()];
        let process =
            Process::start(family, &Program::Flashweir.find()?, Name { role: name, log }, arguments)?;
        process.wait_for(admin)?;
        process.wait_for(address)?;
        Ok(Self { process, address, admin })
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id
    }

    /// As `upstream.urls` wants it.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Listening address.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The page the crowd wants, through the gateway.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/work", self.address)
    }
}

/// A running `flashweir egress`, the sidecar of the caller; ended when dropped.
pub(crate) struct Sidecar {
    _process: Process,
    /// Address for requests.
    pub(crate) address: SocketAddr,
    /// Address of its status.
    pub(crate) admin: SocketAddr,
}

impl Sidecar {
    /// Starts one that sends all requests to the gateway `name` at `url` once, and waits until it accepts
    /// connections.
    pub(crate) fn start(family: &Family, name: &str, url: &str, directory: &Path) -> anyhow::Result<Self> {
        let (address, admin) = (reserve_address()?, reserve_address()?);
        let file = directory.join("sidecar.toml");
        let text = format!(
            "name = \"caller\"\nadmin = \"{admin}\"\n[[listen]]\naddress = \"{address}\"\ntarget = \"{name}\"\n\
             [[target]]\nname = \"{name}\"\nurls = [\"{url}\"]\nconnections = 1024\nretry = {{ attempts = 1 }}\n"
        );
        fs::write(&file, text).with_context(|| format!("{}: cannot be written", file.display()))?;
        let name = Name { role: "sidecar", log: directory.join("sidecar.log") };
        let arguments = [OsStr::new("egress"), OsStr::new("--config"), file.as_os_str()];
        let process = Process::start(family, &Program::Flashweir.find()?, name, arguments)?;
        process.wait_for(admin)?;
        process.wait_for(address)?;
        Ok(Self { _process: process, address, admin })
    }
}

/// A running `flashweir control`; it and the copies that it started are ended when it is dropped.
pub(crate) struct Controller {
    _process: Process,
    /// Address of `/metrics`.
    pub(crate) listen: SocketAddr,
}

impl Controller {
    /// Starts one with this configuration, and waits until it answers.
    pub(crate) fn start(family: &Family, config: &str, directory: &Path) -> anyhow::Result<Self> {
        let listen = reserve_address()?;
        let file = directory.join("control.toml");
        fs::write(&file, format!("listen = \"{listen}\"\n{config}"))
            .with_context(|| format!("{}: cannot be written", file.display()))?;
        let name = Name { role: "controller", log: directory.join("control.log") };
        let arguments = [OsStr::new("control"), OsStr::new("--config"), file.as_os_str()];
        let process =
            Process::start_ended(family, &Program::Flashweir.find()?, name, arguments, Ending::Asked)?;
        process.wait_for(listen)?;
        Ok(Self { _process: process, listen })
    }
}

/// The file of this process, whose command `origin` is started beside it.
pub(crate) fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program's own file cannot be found")
}

struct Process {
    family: Family,
    id: u32,
    name: Name,
}

/// Name and log of a child, for people.
struct Name {
    role: &'static str,
    /// File of its stderr: not to the terminal, which the live view has.
    log: PathBuf,
}

impl Process {
    fn start(
        family: &Family,
        program: &Path,
        name: Name,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<Self> {
        Self::start_ended(family, program, name, arguments, Ending::Killed)
    }

    fn start_ended(
        family: &Family,
        program: &Path,
        name: Name,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        ending: Ending,
    ) -> anyhow::Result<Self> {
        let log = fs::File::create(&name.log)
            .with_context(|| format!("{}: cannot be written", name.log.display()))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let id = family
            .start(&mut command, ending)
            .with_context(|| format!("the {} cannot be started", name.role))?;
        Ok(Self { family: family.clone(), id, name })
    }

    fn wait_for(&self, address: SocketAddr) -> anyhow::Result<()> {
        let Name { role, log } = &self.name;
        let deadline = Instant::now() + START_WITHIN;
        loop {
            // Looked at first: another process may have taken the port of a child that could not.
            if let Some(status) = self.family.exited(self.id) {
                bail!("the {role} ended before it answered at {address}: {status} (see {})", log.display());
            }
            if TcpStream::connect_timeout(&address, START_WITHIN).is_ok() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seconds = START_WITHIN.as_secs();
                bail!("the {role} did not answer at {address} within {seconds} s (see {})", log.display());
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.family.end_one(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child that lives until it is ended: it reads from a pipe that stays open and empty.
    fn patient_child(family: &Family) -> u32 {
        let mut command = Command::new("cat");
        family
            .start(command.stdin(Stdio::piped()).stdout(Stdio::null()), Ending::Killed)
            .expect("cat can be started")
    }

    #[test]
    fn the_family_ends_who_is_told_to_and_at_last_everybody() {
        let family = Family::default();
        let (first, second) = (patient_child(&family), patient_child(&family));
        assert!(family.exited(first).is_none() && family.exited(second).is_none());

        family.end_one(first);
        assert!(family.exited(second).is_none(), "only the first was to end");
        assert_eq!(family.members().len(), 1);

        drop(family.clone().end_all());
        assert!(family.members().is_empty());
        drop(family.end_all());
        family.end_one(second);
    }

    /// Goal: a child that has children has time to end them. Method: a shell that writes a file when it is
    /// asked to end.
    #[test]
    fn a_child_with_children_of_its_own_is_asked_first() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let [ready, asked] = ["ready", "asked"].map(|name| directory.path().join(name));
        let family = Family::default();
        let script = "trap 'touch asked; exit' TERM; touch ready; while :; do sleep .01; done";
        let mut command = Command::new("sh");
        family
            .start(command.args(["-c", script]).current_dir(directory.path()), Ending::Asked)
            .expect("a shell");
        while !ready.exists() {
            std::thread::yield_now();
        }
        drop(family.end_all());
        assert!(asked.exists(), "it was killed without being asked");
    }

    #[test]
    fn a_child_that_ends_before_it_answers_is_told_at_once() {
        let family = Family::default();
        let id = family.start(&mut Command::new("false"), Ending::Killed).expect("false can be started");
        while family.exited(id).is_none() {
            std::thread::yield_now();
        }
        let process = Process { family, id, name: Name { role: "origin", log: "o.log".into() } };
        let message = process.wait_for(reserve_address().unwrap()).unwrap_err().to_string();
        assert!(message.contains("the origin ended before it answered"), "{message}");
    }
}
