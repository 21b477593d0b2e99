//! Distributor, redirectors and replicas as processes: a crowd is spread, a replica dies, a report lies, and
//! no answer reaches another user.

mod cluster;
mod faults;
mod redirects;
mod scene;
mod tiers;
mod users;
