//! NEWS from end to end: a real origin that does real work, a real crowd, and `flashweir run` between them.
//!
//! These tests measure, so they take turns: each has the machine for itself. Their numbers are loose on
//! purpose: they tell working from broken on a busy machine; the demo and `make bench-useful` hold the real
//! bars.

mod agreement;
mod crawler;
mod crowd;
mod datagrams;
mod deadlines;
mod feedback;
mod hot_spot;
mod lies;
mod narrow_link;
mod one_client;
mod quiet;
mod scene;
mod watch;
mod with_the_sentry;
