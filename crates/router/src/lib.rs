//! Watches and protects every server behind an interface, in the kernel, with no help from them.
//!
//! ```text
//!            clients ──► interface ──► gate (XDP) ──► observer (tc) ──► servers
//!                                        ▲ │ counters   │ histograms      │
//!                                 orders │ ▼            ▼                 ▼
//!   driver: sample ─► planner (NEWS) ─► orders      observer (tc) ◄── responses
//! ```
//!
//! Pure: `places` (which destinations have a separate bucket), `responses` and `sample` (the planner's
//! input), `orders` (the gate's plans), `record` and `status` (reports for people). The `driver` runs the
//! planner's loop each interval; `outlet` is what surrounds it, with the programs that `guard` holds before
//! the interfaces; `control` waits for what is due, for signals and for the `admin` listener. `link` divides
//! a link fairly, alone or beside it: a classifier at tc counts flows, `link::control` (pure) runs
//! `flashweir-aqm` over what it counted.
#![cfg(feature = "kernel")]

mod admin;
mod control;
mod destinations;
mod driver;
mod error;
mod figures;
mod guard;
mod interface;
mod launch;
mod link;
mod orders;
mod outlet;
mod places;
mod record;
mod reload;
mod sample;
mod settings;
mod status;

pub use control::run;
pub use error::RouterError;
pub use launch::Launch;
