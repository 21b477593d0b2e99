//! A bounded queue of lines before a writer that may block: its own thread writes them, and lines that find
//! it full are dropped and counted.
//!
//! Of the standard library alone: the well-kept crate for this (tracing-appender) brings nine others, a
//! calendar among them, for files that rotate.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// The end that takes lines. Never blocks.
#[derive(Clone, Debug)]
pub struct LineQueue {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// The end that writes.
#[derive(Debug)]
pub struct Drain {
    lines: SyncSender<Vec<u8>>,
    is_ending: Arc<AtomicBool>,
    /// Its other end goes with the thread.
    ended: Receiver<()>,
}

/// Starts the thread `name` that writes to `out`; `lines` may wait for it, at least 1. Where no thread can be
/// started every line is dropped.
pub fn line_queue(name: &str, out: impl Write + Send + 'static, lines: usize) -> (LineQueue, Drain) {
    let (lines, waiting) = sync_channel(lines);
    let (end, ended) = channel();
    let is_ending = Arc::new(AtomicBool::new(false));
    let ending = is_ending.clone();
    let written = thread::Builder::new().name(name.to_owned());
    drop(written.spawn(move || write_all(out, &waiting, &ending, &end)));
    (LineQueue { lines: lines.clone(), dropped: Arc::default() }, Drain { lines, is_ending, ended })
}

fn write_all(mut out: impl Write, waiting: &Receiver<Vec<u8>>, ending: &AtomicBool, _end: &Sender<()>) {
    loop {
        let line = match waiting.try_recv() {
            Err(TryRecvError::Empty) if !ending.load(Ordering::Acquire) => waiting.recv().ok(),
            line => line.ok(),
        };
        let Some(line) = line else { break };
        // A line that cannot be written has nowhere to go.
        drop(out.write_all(&line));
    }
    drop(out.flush());
}

impl LineQueue {
    /// Number of lines that were dropped.
    #[must_use]
    pub fn dropped_lines(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Takes one or several lines at once, which count as one; returns whether there was room.
    pub fn offer(&self, lines: Vec<u8>) -> bool {
        self.lines.try_send(lines).is_ok()
    }
}

/// A call takes one line.
impl Write for LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !self.offer(line.to_vec()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drain {
    /// Returns when the lines so far are written, or `within` has passed; later lines are dropped.
    pub fn wait(self, within: Duration) {
        self.is_ending.store(true, Ordering::Release);
        // Wakes the thread where it waits for a line; before a full queue it does not wait.
        let _full = self.lines.try_send(Vec::new());
        let _ended = self.ended.recv_timeout(within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Takes a line only when it is allowed to.
    struct Stalled(Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _at_the_end = self.0.recv();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// containerd/containerd#9342: nginx answered no request while nothing read its log.
    #[test]
    fn a_reader_that_stalls_costs_lines_and_no_time() {
        let (go_on, wait) = channel();
        let (mut queue, drain) = line_queue("log", Stalled(wait), 2);
        for _ in 0..10 {
            queue.write_all(b"a line\n").unwrap();
        }
        // Two wait, and one may be in the hands of the thread.
        assert!((7..=8).contains(&queue.dropped_lines()), "{}", queue.dropped_lines());
        // The end of the process waits no longer than it may.
        drain.wait(Duration::from_millis(20));
        drop(go_on);
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_was_taken_is_written_in_order_before_the_process_ends() {
        let kept = Kept::default();
        let (mut queue, drain) = line_queue("log", kept.clone(), 100);
        let lines: String = (0..100).map(|number| format!("line {number}\n")).collect();
        lines.split_inclusive('\n').for_each(|line| queue.write_all(line.as_bytes()).unwrap());
        drain.wait(Duration::from_secs(60));
        assert_eq!(String::from_utf8_lossy(&kept.0.lock().unwrap()), lines);
        assert_eq!(queue.dropped_lines(), 0);
    }
}
