//! Arrival processes and rate profiles drawn from a seed, for the load tool and the simulator alike.
//!
//! A [`RateProfile`] says how fast people arrive over time; an [`ArrivalProcess`] turns it into the moments
//! at which they do, from the process and a seed alone. [`documents`] says what is asked for, [`people`] who
//! asks: how patient they are, how long they stay, whether they try again. Nothing here reads a clock or
//! opens a socket.
//!
//! ```
//! use flashweir_workload::{ArrivalProcess, RateProfile};
//! use std::time::Duration;
//!
//! let crowd = RateProfile::step(50.0, 500.0, Duration::from_secs(2), Duration::from_secs(4))?;
//! let moments: Vec<Duration> = ArrivalProcess::Poisson(crowd).moments(7).collect();
//! assert!(moments.is_sorted());
//! assert!((900..1300).contains(&moments.len())); // 2 s · 50/s + 2 s · 500/s = 1100 on average
//! # Ok::<(), flashweir_workload::ProfileError>(())
//! ```

pub mod arrivals;
pub mod crowd;
pub mod documents;
pub mod hurst;
pub mod operator;
pub mod people;
pub mod profile;
pub mod profile_csv;
mod profile_shapes;
pub mod recording;
pub mod schedule;
#[cfg(test)]
mod tests;

pub use arrivals::{ArrivalError, ArrivalProcess, Moments, SelfSimilarity};
pub use flashweir_core::{DurationText, TextError, duration_text, text_error};
pub use hurst::{Hurst, HurstEstimator};
pub use operator::Operator;
pub use profile::{ProfileError, RateProfile, Segment};
pub use profile_csv::{Column, CsvError};
pub use schedule::{Arrival, Part, Schedule, ScheduleError, Share, Stream};
