//! Everything that defines a run.

use crate::crowd_window::CrowdWindow;
use crate::paths::{Paths, Template};
use crate::sources::Sources;
use crate::transport::{Prepared, TransportOptions};
use crate::{LoadError, LoadTarget};
use bytes::Bytes;
use flashweir_core::limits::LOAD_CLASSES;
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::Habits;
use flashweir_workload::{Part, Schedule};
use http::Method;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// One run. Made by [`LoadPlan::new`] with the defaults of `flashweir load`, then changed at will.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The server.
    pub target: LoadTarget,
    /// Arrival time and class of each person.
    pub schedule: Arc<Schedule>,
    /// The classes, in the order of the schedule's numbers.
    pub classes: Arc<[ClassPlan]>,
    /// The part of the schedule this process has.
    pub part: Part,
    /// Beginning of the schedule; at once unless given.
    pub start_at: Option<SystemTime>,
    /// Addresses people come from, each person from one, drawn from `seed`.
    pub sources: Sources,
    /// Connections and protocol of the clients.
    pub transport: TransportOptions,
    /// Draws each person's address, habits and documents. The schedule has its own seed.
    pub seed: u64,
    /// Threads that send, each with its share of the schedule.
    pub threads: NonZeroUsize,
    /// Beginning and end of the crowd, by which the recovery is judged; read from the schedule unless given.
    pub crowd: Option<CrowdWindow>,
    /// Ends the run early, with a full report of what was done.
    pub stop: StopFlag,
}

/// Behaviour of the people of one class.
#[derive(Clone, Debug)]
pub struct ClassPlan {
    /// Its name in reports.
    pub name: String,
    /// Parts of their requests other than the path.
    pub request: Prepared,
    /// Popularity of the documents they ask for.
    pub popularity: Popularity,
    /// Paths of those documents.
    pub paths: Paths,
    /// Sessions, patience, retries.
    pub habits: Habits,
    /// True if people go on with their session after a request they gave up: machines do, people leave.
    pub goes_on_unserved: bool,
    /// Client timeout for the whole answer of one try.
    pub timeout: Duration,
    /// A completed answer within this time of the moment the try was to begin is goodput.
    pub good_within: Duration,
}

/// Asks a run to end; clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// No request begins any more; tries under way are waited for, at most their timeout.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ClassPlan {
    /// A class called `all` that asks for the target's own path with `GET`.
    ///
    /// # Errors
    /// A path that cannot be sent.
    pub fn get(target: &LoadTarget) -> Result<Self, LoadError> {
        let request = Prepared::new(target, Method::GET, &[], Bytes::new())?;
        Ok(Self::new("all", request, Paths::Template(Template::new(&target.path, None, 0)?)))
    }

    /// All people ask for one path, once: timeout 2 s, goodput within 1 s.
    #[must_use]
    pub fn new(name: impl Into<String>, request: Prepared, paths: Paths) -> Self {
        Self {
            name: name.into(),
            request,
            popularity: Popularity::EachNew,
            paths,
            habits: Habits::default(),
            goes_on_unserved: false,
            timeout: Duration::from_secs(2),
            good_within: Duration::from_secs(1),
        }
    }
}

impl LoadPlan {
    /// A run of one class with one client address, a new connection for each request, seed 1, one thread.
    #[must_use]
    pub fn new(target: LoadTarget, schedule: Schedule, class: ClassPlan) -> Self {
        Self {
            target,
            crowd: CrowdWindow::of(&schedule),
            schedule: Arc::new(schedule),
            classes: [class].into(),
            part: Part::WHOLE,
            start_at: None,
            sources: Sources::default(),
            transport: TransportOptions::default(),
            seed: 1,
            threads: NonZeroUsize::MIN,
            stop: StopFlag::default(),
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`LoadError::Plan`], with the one thing that is wrong.
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |why: String| Err(LoadError::Plan(why));
        if self.classes.is_empty() || self.classes.len() > LOAD_CLASSES {
            return wrong(format!("classes: expected 1 to {LOAD_CLASSES}, not {}", self.classes.len()));
        }
        if self.schedule.classes().iter().any(|class| usize::from(*class) >= self.classes.len()) {
            return wrong("the schedule has people of a class that is not described".to_owned());
        }
        for class in &*self.classes {
            if class.timeout.is_zero() {
                return wrong(format!("class {}: the timeout must be longer than zero", class.name));
            }
            if class.timeout > MAX_TIMEOUT {
                return wrong(format!("class {}: a timeout is at most an hour", class.name));
            }
        }
        // One address that suits is enough: those that do not are left out when the run begins.
        let suits = self.target.addresses.iter().map(|address| self.sources.check(*address));
        suits.reduce(Result::or).unwrap_or(Ok(()))?;
        if self.threads.get() > MAX_THREADS {
            return wrong(format!("threads must be 1 to {MAX_THREADS}, not {}", self.threads));
        }
        if self.schedule.length() > MAX_LENGTH {
            return wrong(format!("a run lasts at most {} s", MAX_LENGTH.as_secs()));
        }
        if self.schedule.expected() > MAX_PEOPLE {
            let expected = self.schedule.expected();
            return wrong(format!("{expected:.1e} people are too many; at most {MAX_PEOPLE:.0e}"));
        }
        if self.schedule.part(self.part).next().is_none() {
            return wrong("the schedule is empty: no request would be sent".to_owned());
        }
        Ok(())
    }
}

/// Far more threads than help; a bound against typing errors.
const MAX_THREADS: usize = 256;
/// A week.
const MAX_LENGTH: Duration = Duration::from_secs(7 * 24 * 3600);
/// Distributions end at an hour.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// Months of work for a fast machine: a rate that makes more is a typing error.
const MAX_PEOPLE: f64 = 1e12;
