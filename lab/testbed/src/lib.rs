//! Network namespaces, links between them, token buckets, propagation delay, and programs that run in them:
//! all gone when dropped; and [`origin`], an honest CPU-bound HTTP server.
//!
//! Namespaces are named after this process, so that runs beside one another never meet. What a process that
//! was killed left behind, namespaces and the programs in them, is removed when the next testbed is made. It
//! needs root, and the programs of the Debian packages iproute2 and ethtool.
//!
//! ```
//! use flashweir_testbed::{Testbed, TestbedError};
//! use std::time::Duration;
//! match Testbed::new(&["clients", "servers"]) {
//!     Ok(mut testbed) => {
//!         let [_, server] = testbed.long_link("clients", "servers", Duration::from_millis(10))?;
//!         let listener = testbed.inside("servers", || std::net::TcpListener::bind((server, 80)))?;
//!         assert!(listener.is_ok());
//!     }
//!     Err(TestbedError::Missing(what)) => println!("not here: {what}"),
//!     Err(other) => return Err(other),
//! }
//! # Ok::<(), TestbedError>(())
//! ```

mod error;
mod leftovers;
mod link;
mod long_wire;
mod namespace;
mod network;
pub mod origin;
mod queue;
mod reserved;
mod running;
mod tap;
mod tools;

pub use error::TestbedError;
pub use network::Testbed;
pub use queue::{QueueBooks, TokenBucket};
pub use reserved::{reserve_address, reserve_ports};
pub use running::Running;
pub use tap::Tap;
pub use tools::program;
