//! The packet level against formulas, textbook behaviour and its own books.

mod bottleneck;
mod policing;
mod random_runs;
mod recovery;
mod tcp_formulas;
mod tcp_handshake;
mod tools;
