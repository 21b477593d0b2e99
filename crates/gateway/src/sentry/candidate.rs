//! A candidate policy in the gateway: asked about every request that comes to the sentry, listened to by nobody.
//!
//! The rules are `flashweir_admission::sentry::CandidateGate`. One [`Candidate`] for each service that has one is shared
//! by all threads; each worker has a [`CandidateStage`], and each request an [`Opinion`] that is told what the live policy
//! makes of it. There is no bell and no timer: what is due is looked at with the next request, and fifty times a second
//! when the live gate's sample is asked for.

use super::service::{Names, Sentry};
use super::stage::Basis;
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::sentry::{Asked, CandidateGate, ClassCounts, Compared, Plan, Policy, Said, Sample};
use flashweir_config::Candidate as Configured;
use flashweir_core::Instant;
use flashweir_runtime::Clock;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all threads share of one service's candidate.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Names, policy, virtual counts and plan, as the live policy has them.
    pub(crate) sentry: Arc<Sentry>,
    /// What was configured: a reload that leaves it alone keeps what was found out.
    pub(crate) configured: Configured,
    /// Of each class, since the candidate was put beside the live policy. The control thread alone uses it.
    seen: Mutex<Box<[Seen]>>,
}

/// What was seen of one class of the candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) counts: ClassCounts,
    pub(crate) compared: Compared,
}

/// One worker's gate of a candidate.
pub(crate) struct CandidateStage {
    candidate: Arc<Candidate>,
    clock: Clock,
    inner: RefCell<Inner>,
}

struct Inner {
    gate: CandidateGate,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    basis: Rc<Basis>,
}

/// What a candidate makes of one request. It is to be told what the live policy does; dropped, the request was refused,
/// or failed where it had been let in.
#[derive(Debug)]
pub(crate) struct Opinion {
    stage: Rc<CandidateStage>,
    /// None once the gate has been told the last of it.
    key: Option<usize>,
    class: u8,
    is_let_in: bool,
}

/// What the candidate said of a request that was refused, for who asks why.
#[derive(Clone, Debug)]
pub(crate) struct CandidateSaid {
    pub(crate) said: Said,
    /// Class of the request, by its place in the candidate.
    pub(crate) class: u8,
    /// Virtual requests at the origin.
    pub(crate) in_flight: u32,
    /// The candidate's plan.
    pub(crate) basis: Rc<Basis>,
}

/// What one worker's gate of a candidate measured.
#[derive(Debug)]
pub(crate) struct CandidateSample {
    pub(crate) candidate: Arc<Candidate>,
    pub(crate) sample: Sample,
    pub(crate) compared: Vec<Compared>,
}

impl Candidate {
    /// Nothing has been compared yet; a gate for each worker.
    pub(crate) fn new(names: Names, policy: Policy, configured: Configured, workers: usize) -> Arc<Self> {
        let seen = Mutex::new(vec![Seen::default(); names.classes.len()].into());
        Arc::new(Self { sentry: Sentry::new(names, policy, true, workers), configured, seen })
    }

    /// What has been seen of each class.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Box<[Seen]>> {
        // Counts are added one by one: a writer that panicked leaves some that are older.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CandidateStage {
    /// The gate of this worker.
    pub(crate) fn new(candidate: Arc<Candidate>, worker: usize, clock: Clock) -> Rc<Self> {
        let sentry = &candidate.sentry;
        let plan = sentry.plan.load_full();
        let inner = Inner {
            gate: CandidateGate::new(sentry.common.clone(), worker, &sentry.policy, &plan),
            latest: Cache::new(sentry.plan.clone()),
            basis: Rc::new(Basis::of(sentry, &plan)),
        };
        Rc::new(Self { candidate, clock, inner: RefCell::new(inner) })
    }

    /// What this stage belongs to.
    pub(crate) fn candidate(&self) -> &Arc<Candidate> {
        &self.candidate
    }

    /// What the candidate makes of a request; `None` when it has too many to follow.
    pub(crate) fn ask(self: &Rc<Self>, now: Instant, asked: Asked) -> Option<Opinion> {
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_plan();
        let key = inner.gate.arrive(now, asked)?;
        Some(Opinion { stage: self.clone(), key: Some(key), class: asked.class, is_let_in: false })
    }

    /// Hands over what was measured since the last time.
    pub(super) fn drain(&self) -> CandidateSample {
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_plan();
        let (sample, compared) = inner.gate.drain(self.clock.now());
        CandidateSample { candidate: self.candidate.clone(), sample, compared }
    }

    fn tell(&self, tell: impl FnOnce(&mut CandidateGate)) {
        tell(&mut self.inner.borrow_mut().gate);
    }
}

impl Inner {
    fn follow_plan(&mut self) {
        let latest = self.latest.load();
        if latest.epoch != self.basis.epoch {
            self.gate.apply(latest);
            self.basis = Rc::new(Basis::of(&self.basis.sentry, latest));
        }
    }
}

impl Opinion {
    /// What the candidate says by now.
    pub(crate) fn said(&self) -> Option<CandidateSaid> {
        let inner = self.stage.inner.borrow();
        Some(CandidateSaid {
            said: inner.gate.said(self.key?),
            class: self.class,
            in_flight: inner.gate.in_flight(),
            basis: inner.basis.clone(),
        })
    }

    /// The live policy makes the request wait.
    pub(crate) fn live_holds(&self, now: Instant) {
        if let Some(key) = self.key {
            self.stage.tell(|gate| gate.live_holds(now, key));
        }
    }

    /// The live policy sends it to the origin.
    pub(crate) fn live_let_in(&mut self, now: Instant) {
        if let Some(key) = self.key {
            self.is_let_in = true;
            self.stage.tell(|gate| gate.live_let_in(now, key));
        }
    }

    /// Its client left while it waited.
    pub(crate) fn live_left(mut self, now: Instant) {
        if let Some(key) = self.key.take() {
            self.stage.tell(|gate| gate.live_left(now, key));
        }
    }

    /// The origin is done with it.
    pub(super) fn live_ended(mut self, completed: bool) {
        self.end(completed);
    }

    fn end(&mut self, completed: bool) {
        let Some(key) = self.key.take() else { return };
        let now = self.stage.clock.now();
        let is_let_in = self.is_let_in;
        self.stage.tell(|gate| match is_let_in {
            true => gate.live_ended(now, key, completed),
            false => gate.live_refused(now, key),
        });
    }
}

impl Drop for Opinion {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl fmt::Debug for CandidateStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CandidateStage").field("candidate", &self.candidate).finish_non_exhaustive()
    }
}
