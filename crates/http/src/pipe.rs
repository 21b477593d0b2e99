//! Pipes through which bytes of a body go from one socket to another within the kernel: `splice(2)` moves
//! pages instead of copying them out and in again.
//!
//! A pipe is in use only while bytes are in it. Of one client that reads slowly it holds 64 KiB at
//! most, as kernel memory.

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes moved at once: the size that the kernel gives a pipe.
pub(crate) const PIPE_BYTES: usize = 64 << 10;

/// Pipes of one worker: a bounded stack, never a queue.
#[derive(Debug)]
pub struct Pipes {
    idle: RefCell<Vec<PipeEnds>>,
    in_use: Cell<usize>,
    in_use_max: usize,
}

/// A pipe in use; dropped, it goes back to the others if it is empty.
#[derive(Debug)]
pub struct Pipe {
    /// None once dropped.
    ends: Option<PipeEnds>,
    bytes: usize,
    pipes: Rc<Pipes>,
}

#[derive(Debug)]
struct PipeEnds {
    read: OwnedFd,
    write: OwnedFd,
}

/// Next part of a body; `None` where it is to be asked for as a frame.
pub type PolledPipe = Poll<Option<Result<Pipe, Box<dyn StdError + Send + Sync>>>>;

/// A body whose bytes can be moved into pipes.
pub trait PipeSource {
    /// A pipe with the next bytes of the body, which is not asked for again after its end.
    fn poll_pipe(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledPipe;
}

/// [`PipeSource::poll_pipe`] of a body that offers it.
pub(crate) type PollPipe<B> = fn(Pin<&mut B>, &mut Context<'_>) -> PolledPipe;

/// A stream that takes the bytes of pipes.
pub trait PipeSink {
    /// Writes bytes of a pipe that is not empty; returns how many were taken.
    fn poll_write_pipe(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>>;
}

/// [`PipeSink::poll_write_pipe`] of a stream that offers it.
pub(crate) type WritePipe<Io> = fn(&mut Io, &mut Context<'_>, &mut Pipe) -> Poll<io::Result<usize>>;

impl Pipes {
    /// A pool of at most `in_use_max` pipes in use at once.
    #[must_use]
    pub fn new(in_use_max: usize) -> Rc<Self> {
        Rc::new(Self { idle: RefCell::default(), in_use: Cell::new(0), in_use_max })
    }

    /// An empty pipe; `None` where the bound is met, or the operating system has no more files.
    #[must_use]
    pub fn take(self: &Rc<Self>) -> Option<Pipe> {
        if self.in_use.get() >= self.in_use_max {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let ends = idle.or_else(|| PipeEnds::open().ok())?;
        self.in_use.set(self.in_use.get() + 1);
        Some(Pipe { ends: Some(ends), bytes: 0, pipes: self.clone() })
    }
}

impl PipeEnds {
    fn open() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { read, write })
    }
}

impl Pipe {
    /// Bytes in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Moves what a socket has received into this pipe, which is empty: at most `bytes_max`. 0 at the end of
    /// the connection. Does not wait.
    ///
    /// # Errors
    /// Errors of a read.
    pub(crate) fn fill(&mut self, socket: impl AsFd, bytes_max: u64) -> io::Result<usize> {
        debug_assert!(self.is_empty(), "a full pipe would look like an empty socket");
        let Some(ends) = &self.ends else { return Ok(0) };
        let most = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(PIPE_BYTES);
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        self.bytes = retry_on_intr(|| splice(&socket, None, &ends.write, None, most, flags))?;
        Ok(self.bytes)
    }

    /// Moves its bytes into a socket; returns how many were taken. Does not wait.
    ///
    /// # Errors
    /// Errors of a write.
    pub fn drain(&mut self, socket: impl AsFd) -> io::Result<usize> {
        let Some(ends) = &self.ends else { return Ok(0) };
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let taken = retry_on_intr(|| splice(&ends.read, None, &socket, None, self.bytes, flags))?;
        self.bytes -= taken;
        Ok(taken)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.pipes.in_use.set(self.pipes.in_use.get() - 1);
        if self.is_empty() {
            self.pipes.idle.borrow_mut().extend(self.ends.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_pipe_moves_at_most_what_it_is_asked_for_and_comes_back_when_empty() {
        let pipes = Pipes::new(1);
        let (mut from, source) = UnixStream::pair().unwrap();
        let (sink, mut to) = UnixStream::pair().unwrap();
        source.set_nonblocking(true).unwrap();
        from.write_all(b"content, and what is behind it").unwrap();
        let mut pipe = pipes.take().unwrap();
        assert!(pipes.take().is_none(), "the bound");
        assert_eq!((pipe.fill(&source, 7).unwrap(), pipe.len()), (7, 7));
        assert_eq!((pipe.drain(&sink).unwrap(), pipe.is_empty()), (7, true));
        let mut read = [0; 7];
        to.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"content");
        drop(pipe);
        assert_eq!(pipes.idle.borrow().len(), 1);

        let mut pipe = pipes.take().unwrap();
        assert_eq!(pipe.fill(&source, u64::MAX).unwrap(), 23);
        drop(pipe);
        assert_eq!(pipes.idle.borrow().len(), 0, "one with bytes in it serves no other body");
        let mut pipe = pipes.take().unwrap();
        let error = pipe.fill(&source, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(from);
        assert_eq!(pipe.fill(&source, 1).unwrap(), 0, "the end");
    }
}
