//! Goal: no sequence of events loses a request or leaves a share behind.

mod regressions;
