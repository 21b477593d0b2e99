//! Behaviour of people: how patient they are, how long they stay and what they do when a try fails.

pub mod person;
pub mod retry;
pub mod session;
pub mod wait;

#[cfg(test)]
mod tests;

pub use person::{Person, RequestNumber};
pub use retry::{Failure, Failures, Pace, Retry};
pub use session::{Session, SessionLength};
pub use wait::{LONGEST_WAIT, Wait};

/// Behaviour of the people of one class. The default: one request each, endless patience, no second try.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Habits {
    /// Patience of a person for each request, drawn once for each person; `None`: as long as it takes.
    pub patience: Option<Wait>,
    /// Requests of a person's visit.
    pub session: Session,
    /// Behaviour of a person when a try fails; `None`: gives the request up.
    pub retry: Option<Retry>,
}

impl Habits {
    /// The person of this number (from zero) in this class. The same seed, class and number give the same
    /// person. Nothing is allocated; about 15 ns for the default habits, up to 100 ns more for patience and
    /// for the session's length if drawn.
    #[must_use]
    pub fn person(&self, seed: u64, class: u16, person: u64) -> Person {
        Person::new(*self, seed, class, person)
    }
}
