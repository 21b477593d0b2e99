//! Processors and the queue before them.

use super::scenario::StationModel;
use flashweir_core::{Duration, Instant, Rng};
use std::collections::VecDeque;

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) arrived: Instant,
    pub(super) document: u32,
}

/// A processor began with a job and is done at `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) processor: u8,
    pub(super) until: Instant,
}

#[derive(Debug)]
pub(super) struct Station {
    model: StationModel,
    serving: Vec<Option<Job>>,
    waiting: VecDeque<Job>,
    rng: Rng,
}

impl Station {
    pub(super) fn new(model: StationModel, rng: Rng) -> Self {
        let serving = vec![None; usize::from(model.processors)];
        Self { model, serving, waiting: VecDeque::new(), rng }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.serving.iter().flatten().count()
    }

    pub(super) fn delay(&self) -> Duration {
        self.model.delay
    }

    /// Takes the job in and says whether a processor begins with it at once.
    ///
    /// # Errors
    /// The station is full.
    pub(super) fn arrive(&mut self, now: Instant, job: Job) -> Result<Option<Start>, ()> {
        if self.len() >= self.model.requests_max {
            return Err(());
        }
        self.waiting.push_back(job);
        let idle = self.serving.iter().position(Option::is_none);
        Ok(idle.and_then(|processor| self.begin(now, processor)))
    }

    /// The job is done; says what the processor begins next.
    pub(super) fn done(&mut self, now: Instant, processor: u8) -> (Option<Job>, Option<Start>) {
        let job = self.serving[usize::from(processor)].take();
        (job, self.begin(now, usize::from(processor)))
    }

    fn begin(&mut self, now: Instant, processor: usize) -> Option<Start> {
        let job = self.waiting.pop_front()?;
        self.serving[processor] = Some(job);
        let work_s = self.rng.exponential(self.model.work.as_secs_f64());
        Some(Start { processor: processor as u8, until: now + Duration::from_secs_f64(work_s) })
    }
}
