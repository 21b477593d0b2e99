//! TCP as far as it shapes load: handshake, Reno's window with NewReno's recovery, timeouts, delayed
//! acknowledgements, ECN.
//!
//! Everything counts whole segments instead of bytes: all but the last segment of a transfer are full, so
//! nothing is lost by it. Each type here is a plain value driven by calls; the network carries the segments
//! and wakes the timers.
//!
//! Left out, as they do not change how load behaves: SACK, timestamps, the window scale, persist and
//! keep-alive timers, simultaneous open, the client's own FIN (it rides on its last acknowledgement),
//! TIME-WAIT. The server does not repeat its SYN-ACK by itself; the client's repeated SYN makes it.

mod endpoint;
mod receiver;
mod round_trip;
mod segment;
mod sender;
mod settings;
mod timer;
mod window;

pub(super) use endpoint::{Endpoint, syn_wait};
pub(super) use segment::Segment;
pub(super) use sender::Timeout;
pub use settings::{Counting, Recovery, TcpSettings, TimeoutFloor};
pub(super) use timer::Timer;
