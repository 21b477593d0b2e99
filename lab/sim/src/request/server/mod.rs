//! One server: who is in service, who waits, and when the next one is done.
//!
//! All requests that are being worked on progress at the same speed, so one clock of *progress* shows when
//! each is done: at the progress it began with plus its work. That clock runs at the speed of one request:
//! full while there are processors enough, a share of them under processor sharing, slower under a fault or
//! when memory is short, and it stands while the processors are busy with refusals. A request may first wait
//! for something elsewhere, in service but without a processor. Cost: O(log n) for a request that begins or
//! ends, however often the speed changes in between.

mod blocked;
mod level;
mod model;
mod progress;

pub use level::Level;
pub use model::{Departed, Discipline, Memory, Overflow, ServerModel};

use super::slab::Id;
use blocked::Blocked;
use flashweir_core::{Duration, Instant};
use level::Levels;
use progress::{Speed, Units};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::num::NonZeroU32;

/// The server, with all requests in it.
#[derive(Debug)]
pub(super) struct Server {
    model: ServerModel,
    cost_of_refusal: Units,
    /// By the progress at which they are done; those of `left` are in here too.
    running: BinaryHeap<Reverse<(Units, Turn, Id)>>,
    left: BTreeSet<Turn>,
    /// In service, before their work.
    blocked: Blocked,
    /// Accepted and not worked on yet, in their order; those who left before their turn are marked.
    waiting: VecDeque<Waiting>,
    waiting_left: usize,
    turns: u64,
    progress: Units,
    /// Work on refusals that is still to be done.
    refusing: Units,
    fault_slowdown: f64,
    /// Of a request with a processor to itself.
    speed: Speed,
    updated: Instant,
    is_down: bool,
    counts: ServerCounts,
    levels: Levels,
}

/// Requests offered to the server, counted by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Taken in, to be served.
    pub accepted: u64,
    /// Of these, served to the end.
    pub completed: u64,
    /// Of these, stopped because the client had gone.
    pub stopped: u64,
    /// Of these, lost in a crash.
    pub crashed: u64,
    /// Refused by the server itself.
    pub refused: u64,
    /// Dropped without an answer, whether or not the connection was reset.
    pub dropped: u64,
}

/// The order in which requests were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u64);

/// Result of offering a request to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    Accepted(Turn),
    /// The refusal is sent at this moment.
    Refused(Instant),
    Dropped,
    Reset,
}

/// A request that the server took in.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    turn: Turn,
    request: Id,
    work: Units,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    accepted: Accepted,
    /// Time from the start of service to the start of work.
    blocked: Duration,
    left: bool,
}

impl Server {
    /// An idle server; its levels are recorded in `bins` of `bin` each.
    pub(super) fn new(model: ServerModel, bin: Duration, bins: usize) -> Self {
        let cost = if let Overflow::Refuse { cost } = model.overflow { cost } else { Duration::ZERO };
        Self {
            model,
            cost_of_refusal: Units::of(cost),
            running: BinaryHeap::new(),
            left: BTreeSet::new(),
            blocked: Blocked::default(),
            waiting: VecDeque::new(),
            waiting_left: 0,
            turns: 0,
            progress: Units::ZERO,
            refusing: Units::ZERO,
            fault_slowdown: 1.0,
            speed: Speed::slowed(model.slowdown(0)),
            updated: Instant::ZERO,
            is_down: false,
            counts: ServerCounts::default(),
            levels: Levels::new(bin, bins),
        }
    }

    /// A request that needs so much work comes.
    pub(super) fn offer(&mut self, now: Instant, request: Id, work: Duration) -> Offered {
        self.offer_after(now, request, Duration::ZERO, work)
    }

    /// A request comes that, once in service, first waits for `blocked` without a processor and then needs
    /// `work`.
    pub(super) fn offer_after(
        &mut self,
        now: Instant,
        request: Id,
        blocked: Duration,
        work: Duration,
    ) -> Offered {
        self.advance(now);
        let places =
            self.workers().saturating_add(self.model.queue.map_or(usize::MAX, |queue| queue as usize));
        if self.present() >= places {
            return self.overflow(now);
        }
        let turn = Turn(self.turns);
        self.turns += 1;
        self.counts.accepted += 1;
        let accepted = Accepted { turn, request, work: Units::of(work) };
        self.waiting.push_back(Waiting { accepted, blocked, left: false });
        self.start_next();
        self.follow_load();
        Offered::Accepted(turn)
    }

    /// The next request that is done by now.
    pub(super) fn finish_next(&mut self, now: Instant) -> Option<Id> {
        self.advance(now);
        self.drop_left();
        let &Reverse((done_at, _, _)) = self.running.peek()?;
        if done_at > self.progress {
            return None;
        }
        let Reverse((_, _, request)) = self.running.pop()?;
        self.counts.completed += 1;
        self.levels.serve();
        self.start_next();
        self.follow_load();
        Some(request)
    }

    /// Time at which [`finish_next`](Self::finish_next) is to be called next if nothing else happens: a
    /// request is done or has waited; `None` while the server is empty.
    pub(super) fn next_done_at(&mut self) -> Option<Instant> {
        let wakes_at = self.blocked.next_end();
        self.next_end_of_work().into_iter().chain(wakes_at).min()
    }

    fn next_end_of_work(&mut self) -> Option<Instant> {
        self.drop_left();
        let &Reverse((done_at, _, _)) = self.running.peek()?;
        let needed = done_at.minus(self.progress).nanos_at(self.speed_of_each());
        let nanos = self.refusals_take_nanos().saturating_add(needed);
        Some(self.updated + Duration::from_nanos(nanos))
    }

    /// The client of an accepted request is gone. Whether the server stopped working for it.
    pub(super) fn depart(&mut self, now: Instant, turn: Turn) -> bool {
        if self.model.departed == Departed::WorksOn {
            return false;
        }
        self.advance(now);
        self.counts.stopped += 1;
        match self.place_in_line(turn) {
            Some(place) => self.leave_line(place),
            None if self.blocked.remove(turn) => self.start_next(),
            None => self.stop_running(turn),
        }
        self.follow_load();
        true
    }

    /// Everything in service and waiting is lost; all of it, in order. Nothing can be offered until
    /// [`restart`](Self::restart).
    pub(super) fn crash(&mut self, now: Instant) -> Vec<Id> {
        self.advance(now);
        self.is_down = true;
        let left = std::mem::take(&mut self.left);
        let mut running: Vec<_> = self.running.drain().map(|Reverse((_, turn, id))| (turn, id)).collect();
        running.retain(|(turn, _)| !left.contains(turn));
        running.extend(self.blocked.drain().map(|blocked| (blocked.turn, blocked.request)));
        running.sort_unstable_by_key(|(turn, _)| *turn);
        let waiting = self.waiting.drain(..).filter(|waiting| !waiting.left);
        let lost: Vec<Id> = running
            .into_iter()
            .map(|(_, id)| id)
            .chain(waiting.map(|waiting| waiting.accepted.request))
            .collect();
        self.waiting_left = 0;
        self.refusing = Units::ZERO;
        self.counts.crashed += lost.len() as u64;
        self.follow_load();
        lost
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.advance(now);
        self.is_down = false;
    }

    pub(super) fn is_down(&self) -> bool {
        self.is_down
    }

    /// From now on everything takes `slowdown` times as long as usual (1 or more).
    pub(super) fn slow_down(&mut self, now: Instant, slowdown: f64) {
        self.advance(now);
        self.fault_slowdown = slowdown;
        self.follow_speed();
    }

    /// Changes the number of processors from now on; only under processor sharing, where no request has to
    /// stop for it.
    pub(super) fn change_processors(&mut self, now: Instant, processors: NonZeroU32) {
        self.advance(now);
        self.model.processors = processors;
        self.follow_speed();
    }

    /// Accounts for the time until `now`: waits that ended, progress, and what the levels were.
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some((ends_at, request)) = self.blocked.wake(now) {
            self.advance_work(ends_at);
            self.run(request);
        }
        self.advance_work(now);
    }

    fn advance_work(&mut self, now: Instant) {
        if now <= self.updated {
            return;
        }
        let elapsed = now.saturating_since(self.updated).as_nanos() as u64;
        let refusing = self.refusals_take_nanos().min(elapsed);
        if refusing > 0 {
            let processors = self.model.processors.get();
            self.refusing = self.refusing.minus(self.speed.times(processors).done_in(refusing));
            self.levels.add(refusing, self.level(processors));
        }
        let working = elapsed - refusing;
        if working > 0 {
            self.progress = self.progress.plus(self.speed_of_each().done_in(working));
            let busy = self.running_now().min(self.model.processors.get() as usize) as u32;
            self.levels.add(working, self.level(busy));
        }
        self.updated = now;
    }

    pub(super) fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Accepted and neither done nor gone.
    pub(super) fn present(&self) -> usize {
        self.in_service() + self.waiting.len() - self.waiting_left
    }

    /// Accepted and not in service yet.
    pub(super) fn waiting(&self) -> usize {
        self.present().saturating_sub(self.workers())
    }

    pub(super) fn into_levels(self) -> Vec<Level> {
        self.levels.into_bins()
    }

    /// Checks the bounds of the model, and that no request is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        let ServerCounts { accepted, completed, stopped, crashed, .. } = self.counts;
        let present = self.present() as u64;
        if accepted != completed + stopped + crashed + present {
            return Err(format!("{:?} do not add up with {present} present", self.counts));
        }
        let (running, capacity) = (self.in_service(), self.capacity());
        if running > capacity {
            return Err(format!("{running} requests are worked on, {capacity} can be"));
        }
        let waiting = self.waiting();
        if self.model.queue.is_some_and(|queue| waiting > queue as usize) {
            return Err(format!("{waiting} requests wait, more than {:?}", self.model.queue));
        }
        if running < capacity && self.present() > running {
            return Err(format!("{} of {} are worked on, {capacity} could be", running, self.present()));
        }
        Ok(())
    }

    fn overflow(&mut self, now: Instant) -> Offered {
        match self.model.overflow {
            Overflow::Drop => {
                self.counts.dropped += 1;
                Offered::Dropped
            }
            Overflow::Reset => {
                self.counts.dropped += 1;
                Offered::Reset
            }
            Overflow::Refuse { .. } => {
                self.counts.refused += 1;
                self.refusing = self.refusing.plus(self.cost_of_refusal);
                Offered::Refused(now + Duration::from_nanos(self.refusals_take_nanos()))
            }
        }
    }

    /// Position of this turn in the queue. Requests that leave have mostly waited longest, and while none was
    /// taken out of the middle, positions follow turns: the search is seldom needed, and touches memory all
    /// over the queue.
    fn place_in_line(&self, turn: Turn) -> Option<usize> {
        let ahead = turn.0.checked_sub(self.waiting.front()?.accepted.turn.0)?;
        let likely = usize::try_from(ahead).unwrap_or(usize::MAX).min(self.waiting.len() - 1);
        if self.waiting[likely].accepted.turn == turn {
            return Some(likely);
        }
        self.waiting.binary_search_by_key(&turn, |waiting| waiting.accepted.turn).ok()
    }

    fn leave_line(&mut self, place: usize) {
        self.waiting[place].left = true;
        self.waiting_left += 1;
        while self.waiting.front().is_some_and(|first| first.left) {
            self.waiting.pop_front();
            self.waiting_left -= 1;
        }
        // Each look at all of them is paid by as many who left.
        if self.waiting_left * 2 > self.waiting.len() {
            self.waiting.retain(|waiting| !waiting.left);
            self.waiting_left = 0;
        }
    }

    fn stop_running(&mut self, turn: Turn) {
        self.left.insert(turn);
        if self.left.len() * 2 > self.running.len() {
            let left = std::mem::take(&mut self.left);
            self.running.retain(|Reverse((_, turn, _))| !left.contains(turn));
        }
        self.start_next();
    }

    /// Starts the next queued requests while there is room.
    fn start_next(&mut self) {
        while self.in_service() < self.capacity()
            && let Some(next) = self.waiting.pop_front()
        {
            if next.left {
                self.waiting_left -= 1;
                continue;
            }
            if next.blocked.is_zero() {
                self.run(next.accepted);
            } else {
                self.blocked.insert(self.updated + next.blocked, next.accepted);
            }
        }
    }

    fn run(&mut self, Accepted { turn, request, work }: Accepted) {
        self.running.push(Reverse((self.progress.plus(work), turn, request)));
    }

    /// Takes those out who left and would be next.
    fn drop_left(&mut self) {
        while !self.left.is_empty()
            && let Some(Reverse((_, turn, _))) = self.running.peek()
            && self.left.remove(turn)
        {
            self.running.pop();
        }
    }

    fn follow_load(&mut self) {
        if self.model.slows_with_load() {
            self.follow_speed();
        }
    }

    fn follow_speed(&mut self) {
        let in_service = self.present().min(self.workers());
        self.speed = Speed::slowed(self.fault_slowdown * self.model.slowdown(in_service));
    }

    fn speed_of_each(&self) -> Speed {
        self.speed.shared(self.model.processors.get(), self.running_now())
    }

    fn refusals_take_nanos(&self) -> u64 {
        if self.refusing == Units::ZERO {
            return 0;
        }
        self.refusing.nanos_at(self.speed.times(self.model.processors.get()))
    }

    fn running_now(&self) -> usize {
        self.running.len() - self.left.len()
    }

    /// Worked on, or blocked.
    fn in_service(&self) -> usize {
        self.running_now() + self.blocked.len()
    }

    fn workers(&self) -> usize {
        self.model.workers.map_or(usize::MAX, |workers| workers.get() as usize)
    }

    /// Maximum number in service at once; under first come, first served a blocked request keeps the others
    /// from its processor.
    fn capacity(&self) -> usize {
        match self.model.discipline {
            Discipline::Shared => self.workers(),
            Discipline::FirstCome => self.workers().min(self.model.processors.get() as usize),
        }
    }

    fn level(&self, busy: u32) -> [u64; 3] {
        let present = self.present();
        let in_service = present.min(self.workers());
        [(present - in_service) as u64, in_service as u64, u64::from(busy)]
    }
}
