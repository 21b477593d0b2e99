//! One person, from their first request to their last.

use super::{Failure, Habits};
use crate::documents::Popularity;
use flashweir_core::Rng;
use std::time::Duration;

/// One person of a class, with everything they will do decided by the seed.
///
/// How long their session is, what request j asks for, how long they think after it and how patient they are
/// depend on the seed, the class, the person and j alone: never on answers, retries or what others do, so
/// that two runs against different services, and the simulator, see the same crowd. Every purpose draws from
/// its own generator; every method may be called any number of times, in any order, with the same
/// outcome.
///
/// About 200 bytes; nothing is allocated.
///
/// ```
/// use flashweir_workload::people::{Habits, Session};
/// let session = Session { requests: "2".parse()?, think: "exp:2s".parse()? };
/// let habits = Habits { session, ..Habits::default() };
/// let mut person = habits.person(7, 0, 42);
/// while let Some(request) = person.next_request() {
///     // Send it; then, unless it was the last, come back after:
///     let _ = (request, person.think());
/// }
/// # Ok::<(), flashweir_workload::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Person {
    habits: Habits,
    seed: u64,
    class: u16,
    person: u64,
    patience: Option<Duration>,
    /// Requests of the session; `u64::MAX` if endless.
    requests: u64,
    /// Requests made so far, the one under way included.
    requests_made: u64,
}

/// The number of a request within its person's session, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestNumber(pub u64);

impl Person {
    /// The person of this number in this class; about 15 ns if the habits leave nothing to be drawn.
    pub(super) fn new(habits: Habits, seed: u64, class: u16, person: u64) -> Self {
        let mut new = Self { habits, seed, class, person, patience: None, requests: 0, requests_made: 0 };
        new.patience = habits.patience.map(|patience| patience.draw(&mut new.draws(Purpose::Patience)));
        new.requests = habits.session.requests.draw(|| new.draws(Purpose::SessionLength));
        new
    }

    /// Time that the person waits for each of their requests, from the moment it was first to be made, over
    /// all its tries and the waits between them; then they leave for good. `None`: as long as it takes.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// Goes on to the next request of the session; `None` if it is over.
    pub fn next_request(&mut self) -> Option<RequestNumber> {
        let next = self.requests_made;
        (next < self.requests).then(|| {
            self.requests_made += 1;
            RequestNumber(next)
        })
    }

    /// The document that a request asks for. Nothing is drawn unless the popularity draws; then about 60 ns.
    #[must_use]
    pub fn document(&self, request: RequestNumber, popularity: &Popularity) -> u32 {
        popularity.document(self.person, request.0, || self.draws(Purpose::Document).fork(request.0))
    }

    /// Time that the person thinks between the end of the request that they made last and the next one. About
    /// 100 ns if drawn.
    #[must_use]
    pub fn think(&self) -> Duration {
        self.habits.session.think.draw(&mut self.draws(Purpose::Think).fork(self.requests_made))
    }

    /// Time that the person waits before they try the request that they made last again, after `tries_so_far`
    /// tries of it (the failed one included), of which the last failed for `why` and, if it was an answer,
    /// `asked` for a wait (`Retry-After`). `None`: they give the request up. Patience is not looked at: who
    /// keeps the time does.
    #[must_use]
    pub fn retry_after(&self, why: Failure, tries_so_far: u32, asked: Option<Duration>) -> Option<Duration> {
        let draws = || self.draws(Purpose::Retry).fork(self.requests_made).fork(u64::from(tries_so_far));
        self.habits.retry.as_ref()?.wait(why, tries_so_far, asked, draws)
    }

    /// The generator of one purpose of this person; about 30 ns.
    fn draws(&self, purpose: Purpose) -> Rng {
        let part = PEOPLE ^ (u64::from(self.class) << 8) ^ purpose as u64;
        Rng::new(self.seed).fork(part).fork(self.person)
    }
}

/// Kinds of draws, each with a separate generator.
#[derive(Clone, Copy)]
enum Purpose {
    Patience,
    SessionLength,
    Document,
    Think,
    Retry,
}

/// Names the forks that people are drawn from, separate from all others of the seed: "peop" in ASCII above
/// the class and the purpose.
const PEOPLE: u64 = 0x7065_6F70 << 32;
