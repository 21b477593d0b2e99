//! `flashweir agent`: beside a service, reports how busy it is and what its machine is short of.
//!
//! Once a second it reads the accounts that Linux keeps of a control group, a process or the machine
//! (pressure, processor time, memory, sockets), and answers `/load` with what changed since. Gateways ask;
//! nothing is pushed, and a gateway does without it.
//!
//! [`account`] reads the text of the kernel's files, [`meter`] turns two readings into a report: plain
//! values, without files or clock. [`source`] reads the files, and [`run`] serves the report.
//!
//! The parsers are our own and small: what an agent reads each second is bounded by rows and bytes, and
//! allocates little.

pub mod account;
pub mod meter;
mod run;
pub mod source;

pub use meter::{LoadReport, Meter};
pub use run::{AgentError, AgentSettings, run};
pub use source::{MeasuredScope, Source, SourceError};
