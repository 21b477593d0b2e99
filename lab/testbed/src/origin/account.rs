//! Use of time of an origin in other processes: the scheduler's account of its threads, and the origin's own
//! count of completed requests.
//!
//! `flashweir origin` is one process that answers how many requests it has completed. An application server
//! is a tree of processes, and under a crowd it answers no question in time: its application appends one byte
//! to a file for each completed request.
//!
//! [`flashweir_core::measure::useful`] makes a share of two readings. A [`Ruler`] takes the readings while a
//! crowd is sent.

use crate::origin::processes::with_descendants;
use crate::origin::request::COMPLETED_PATH;
use flashweir_core::measure::useful::{Reading, ThreadTime, Useful};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::slice;
use std::time::{Duration, Instant};

/// An origin under a flood answers from a thread that shares its core with thousands of connections.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Far more than a head and a number.
const ANSWER_BYTES_MAX: u64 = 4_096;

/// Reads the account of one origin.
#[derive(Clone, Debug)]
pub struct OriginMeter {
    processes: Processes,
    completions: Completions,
    /// Zero of the readings' clock.
    epoch: Instant,
}

/// The processes that are the origin.
#[derive(Clone, Debug)]
enum Processes {
    One(u32),
    /// These and their descendants at the moment of a reading.
    Trees(Vec<u32>),
}

/// Source of the number of completed requests.
#[derive(Clone, Debug)]
enum Completions {
    /// The origin that listens here answers it.
    Asked(SocketAddr),
    /// The length of this file, bytes.
    Marked(PathBuf),
}

impl OriginMeter {
    /// Of the origin that listens at `address` in the process of this id.
    #[must_use]
    pub fn new(process: u32, address: SocketAddr) -> Self {
        let (processes, completions) = (Processes::One(process), Completions::Asked(address));
        Self { processes, completions, epoch: Instant::now() }
    }

    /// Of an application server: the processes of these ids with all their descendants, whose application
    /// appends one byte to the file `marks` for each completed request.
    #[must_use]
    pub fn of_trees(roots: Vec<u32>, marks: PathBuf) -> Self {
        let (processes, completions) = (Processes::Trees(roots), Completions::Marked(marks));
        Self { processes, completions, epoch: Instant::now() }
    }

    /// The account now. Reads a file for each thread of the origin, and opens a connection to an origin that
    /// is asked; all within about a millisecond.
    ///
    /// # Errors
    /// The process (of several, a root) is gone, this system has no `schedstat`, the origin does not answer
    /// within two seconds, or there is no file of marks.
    pub fn read(&self) -> io::Result<Reading> {
        let completed = self.completions.read()?;
        let (roots, processes) = match &self.processes {
            Processes::One(process) => (slice::from_ref(process), vec![*process]),
            Processes::Trees(roots) => (roots.as_slice(), with_descendants(roots)),
        };
        let (mut threads, mut on_one_core) = (Vec::new(), true);
        for process in processes {
            match threads_of(process).and_then(|threads| Ok((threads, is_on_one_core(process)?))) {
                Ok((of_this, is_on_one)) => {
                    threads.extend(of_this);
                    on_one_core &= is_on_one;
                }
                // A worker that ended since the tree was read.
                Err(error) if error.kind() == ErrorKind::NotFound && !roots.contains(&process) => {}
                Err(error) => return Err(error),
            }
        }
        let at_ns = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(Reading { at_ns, threads, on_one_core, completed })
    }
}

impl Completions {
    fn read(&self) -> io::Result<u64> {
        match self {
            Self::Asked(address) => completed(*address),
            Self::Marked(marks) => {
                Ok(fs::metadata(marks).map_err(|error| at(&marks.display().to_string(), &error))?.len())
            }
        }
    }
}

fn threads_of(process: u32) -> io::Result<Vec<ThreadTime>> {
    let folder = format!("/proc/{process}/task");
    let mut threads = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or_default();
        let file = path.join("schedstat");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            // The thread ended since the folder was read. Without its folder, that is; otherwise the file is
            // missing.
            Err(_) if !path.exists() => continue,
            Err(error) => return Err(at(&file.display().to_string(), &error)),
        };
        let parsed = ThreadTime::parse(id, &text);
        threads.push(parsed.map_err(|error| invalid(format!("{}: {error}", file.display())))?);
    }
    Ok(threads)
}

/// Readings at given moments of a run, each with the number of answers in time until then.
#[derive(Debug)]
pub struct Ruler {
    meter: OriginMeter,
    moments: Vec<Duration>,
    marks: Vec<io::Result<(Reading, u64)>>,
}

impl Ruler {
    /// Takes a reading at each of `moments`, which rise.
    #[must_use]
    pub fn new(meter: OriginMeter, moments: impl Into<Vec<Duration>>) -> Self {
        Self { meter, moments: moments.into(), marks: Vec::new() }
    }

    /// To be called again and again while the run goes on: takes a reading if the next moment has come, and
    /// else does nothing. `in_time` is the number of successful answers that reached clients within their
    /// target so far.
    pub fn look(&mut self, elapsed: Duration, in_time: u64) {
        if self.moments.get(self.marks.len()).is_some_and(|moment| elapsed >= *moment) {
            self.marks.push(self.meter.read().map(|reading| (reading, in_time)));
        }
    }

    /// Use of the origin's time between two of the moments, by their numbers.
    ///
    /// # Errors
    /// One of the readings failed, or was not taken because the run ended before.
    pub fn useful(&self, from: usize, to: usize) -> io::Result<Useful> {
        let mark = |number: usize| match self.marks.get(number) {
            Some(Ok(mark)) => Ok(mark),
            Some(Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Err(invalid("the run ended before the origin's account was read".to_owned())),
        };
        let ((before, in_time_before), (after, in_time_after)) = (mark(from)?, mark(to)?);
        let in_time = in_time_after.saturating_sub(*in_time_before);
        Useful::between(before, after, in_time)
            .ok_or_else(|| invalid("the origin's account went backwards: was it started again?".to_owned()))
    }
}

/// Asks the origin how many requests it has completed.
fn completed(address: SocketAddr) -> io::Result<u64> {
    let ask = || -> io::Result<String> {
        let mut connection = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        connection.set_read_timeout(Some(ANSWER_WITHIN))?;
        connection.set_write_timeout(Some(ANSWER_WITHIN))?;
        // HTTP/1.0: the answer ends with the connection.
        let request = format!("GET {COMPLETED_PATH} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes())?;
        let mut answer = String::new();
        connection.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    let place = format!("http://{address}{COMPLETED_PATH}");
    let answer = ask().map_err(|error| at(&place, &error))?;
    let number = answer.split_once("\r\n\r\n").and_then(|(_, body)| body.trim().parse().ok());
    number.ok_or_else(|| {
        let first = answer.lines().next().unwrap_or_default();
        invalid(format!("{place}: expected a number of completed requests, found \"{first}\""))
    })
}

/// Returns whether all threads of a process were last restricted to one core: its `status` speaks for its
/// first thread, and [`placement`](crate::origin::placement) moves all.
fn is_on_one_core(process: u32) -> io::Result<bool> {
    let file = format!("/proc/{process}/status");
    let status = fs::read_to_string(&file).map_err(|error| at(&file, &error))?;
    let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(cores.is_some_and(|cores| cores.trim().parse::<u32>().is_ok()))
}

fn at(place: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{place}: {error}"))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Cold, Origin, Settings};

    /// The origin runs in this very process, whose other tests are busy too: what is checked is that numbers
    /// are read.
    #[test]
    fn an_origin_is_read_while_it_works() {
        let origin = Origin::start(Settings {
            listen: ([127, 0, 0, 1], 0).into(),
            workers: std::num::NonZeroUsize::MIN,
            work_ms: 1.0,
            wait_ms: 0.0,
            cold: Cold::default(),
            body_bytes: 1,
            iterations_per_ms: Some(1_000.0),
        })
        .unwrap();
        let second = Duration::from_secs(1);
        let meter = OriginMeter::new(std::process::id(), origin.address());
        let mut ruler = Ruler::new(meter, [second, 2 * second]);
        ruler.look(second / 2, 0);
        assert!(ruler.marks.is_empty() && ruler.useful(0, 1).is_err());
        ruler.look(second, 4);
        let mut client = TcpStream::connect(origin.address()).unwrap();
        client.write_all(b"GET / HTTP/1.0\r\nHost: origin\r\n\r\n").unwrap();
        client.read_to_end(&mut Vec::new()).unwrap();
        ruler.look(second, 5);
        assert_eq!(ruler.marks.len(), 1, "the second moment has not come");
        ruler.look(3 * second, 5);
        let useful = ruler.useful(0, 1).unwrap();
        assert!(useful.busy > 0.0 && useful.in_time == 1.0 && useful.processor_ms.is_some(), "{useful:?}");
    }

    /// A shell and its child, which is the one that computes: its time counts as the origin's, and so do
    /// bytes of the file.
    #[test]
    fn the_work_of_a_child_process_counts() {
        let marks = std::env::temp_dir().join(format!("flashweir-marks-{}", std::process::id()));
        let work = "sh -c 'printf . >> \"$0\"; while :; do :; done' \"$0\" & read line; kill $!";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", work, &marks.display().to_string()])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let meter = OriginMeter::of_trees(vec![shell.id()], marks.clone());
        let deadline = Instant::now() + Duration::from_secs(20);
        let running_ns =
            |reading: &Reading| reading.threads.iter().map(|thread| thread.running_ns).sum::<u64>();
        let reading = loop {
            match meter.read() {
                Ok(reading) if running_ns(&reading) > 50_000_000 => break reading,
                other => assert!(Instant::now() < deadline, "the child does not compute: {other:?}"),
            }
            std::thread::park_timeout(Duration::from_millis(10));
        };
        // The end of its input ends the shell, which ends its child.
        drop(shell.stdin.take());
        shell.wait().unwrap();
        fs::remove_file(&marks).unwrap();
        assert!(reading.completed == 1 && reading.threads.len() >= 2, "{reading:?}");
        let gone = meter.read().unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _ = connection.read(&mut [0; 512]);
            let _ = connection.write_all(b"HTTP/1.0 404 Not Found\r\n\r\nno\n");
        });
        let message = OriginMeter::new(std::process::id(), address).read().unwrap_err().to_string();
        assert!(message.contains("/completed: expected a number") && message.contains("404"), "{message}");
        let message = OriginMeter::new(std::process::id(), address).read().unwrap_err().to_string();
        assert!(message.contains(&address.to_string()), "{message}");
    }
}
