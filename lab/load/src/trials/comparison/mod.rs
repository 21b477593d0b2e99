//! Overload protections side by side: the crowds they meet, the outcomes, and the page that shows them.
//!
//! 1. A [`Scene`] says what comes and how the origin changes meanwhile; [`Scene::classes`] are the people of its crowd.
//! 2. [`ComparisonOutcome::of`] reads one run: goodput over what the origin could have done, where the rest
//!    went, and how much of the origin's time was useful.
//! 3. [`best`] chooses among the settings of a protection that has to be tuned.
//! 4. [`Comparison`] holds medians over rounds, [`Comparison::judgements`] says where Flashweir is not the best and
//!    why, and [`Comparison::page`] is `docs/comparison.md`.

mod judgement;
mod outcome;
mod page;
mod scene;
mod search;
mod table;

pub use judgement::{Judgement, Verdict, What};
pub use outcome::ComparisonOutcome;
pub use scene::{Change, ClassRates, GOLD_SHARE, OriginKind, PATIENCE_S, Scene, TARGET_S};
pub use search::{BEYOND_GRID_MAX, Knob, SearchResult, Trial, best};
pub use table::{Cell, Column, Comparison, Range, Row, Setup, TunedSetting};
