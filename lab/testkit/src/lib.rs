//! Starts real servers and the real binary for tests, and always stops them.
//!
//! Plain threads and blocking sockets, so that a test needs no runtime and shares no code with what it tests:
//! the HTTP spoken here is read and written byte by byte. Everything stays on loopback or in separate network
//! namespaces ([`Testbed`]), every wait has a deadline, and each process that a test started is ended by its
//! own id when it goes out of scope, also when the test fails.
//!
//! A failure in here panics with a message that names it: to a test, a server that does not start is a
//! failure like any other.

mod binary;
mod certificates;
mod client;
mod connection;
mod crowd_tools;
mod curl;
mod deadline;
mod environment;
mod fake_clock;
mod gateway;
mod haproxy;
mod http2;
mod kubernetes;
mod latch;
mod listening;
mod message;
mod narrow_link;
mod nginx;
mod open_metrics;
mod own_answers;
pub mod packet;
mod pattern;
mod php;
mod ports;
mod process;
mod programs;
mod small_disk;
mod status_watch;
mod testbed;
#[cfg(test)]
mod tests;
mod traces;
mod upstream;
mod visitor;

pub use binary::Flashweir;
pub use certificates::{Authority, CertificateFiles};
pub use client::Client;
pub use connection::{Connection, Received};
pub use crowd_tools::{Load, Origin};
pub use curl::{Curl, CurlOutput};
pub use deadline::{PATIENCE, eventually, until};
pub use environment::number_from_environment;
pub use fake_clock::{Clocks, FakeClock};
pub use gateway::{Gateway, GatewayBuilder};
pub use haproxy::Haproxy;
pub use http2::{Http2Client, StreamEnd, frame};
pub use kubernetes::{ApiAnswer, ControlPlane, KubernetesApi, ProcessKubelet, ResourceMetrics};
pub use latch::Latch;
pub use listening::{Listening, READY_FILE};
pub use message::{Fields, Message, ReadError};
pub use narrow_link::NarrowLink;
pub use nginx::{Nginx, RateLimit};
pub use open_metrics::{Metrics, NotOpenMetrics};
pub use own_answers::{PRIVATE, is_made_for, number_of, own_answer, private_case};
pub use pattern::{checksum, pattern};
pub use php::Php;
pub use ports::{reserve_address, reserve_ports};
pub use process::{Finished, Process, Signal};
pub use programs::{record_result, require_program, skip};
pub use small_disk::SmallDisk;
pub use status_watch::StatusWatch;
pub use testbed::{QueueBooks, Testbed, TokenBucket};
pub use traces::{trace, trace_counts};
pub use upstream::{Upstream, reflect};
pub use visitor::Visitor;
