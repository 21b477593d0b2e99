//! `flashweir egress` with real processes on loopback: scripted servers that sign what they ask for, and
//! clients that know nothing of it.

mod bad_feedback;
mod chain;
mod cold;
mod datagrams;
mod deadlines;
mod examples;
mod limits;
mod proxying;
mod pushback;
mod real_gateway;
mod restarts;
mod retries;
mod scene;
mod silence;
mod start_errors;
