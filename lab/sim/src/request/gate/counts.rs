//! Counts of the gate.

/// Requests counted by the gate, of all classes or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// Tries that reached the gate.
    pub received: u64,
    /// Let in.
    pub admitted: u64,
    /// Refused.
    pub shed: u64,
    /// Admitted ones whose time in the service is over, in any way.
    pub ended: u64,
    /// Refused by a gate that only watches, and let in.
    pub shed_in_shadow: u64,
    /// Waiting at the gate, now.
    pub held: u64,
    /// Waited at the gate until their clients left.
    pub left: u64,
}

/// Counts of all requests, and of each class's.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) all: GateCounts,
    pub(super) classes: Vec<GateCounts>,
}

impl GateCounts {
    /// Sum of both.
    pub(super) fn plus(self, other: &Self) -> Self {
        Self {
            received: self.received + other.received,
            admitted: self.admitted + other.admitted,
            shed: self.shed + other.shed,
            ended: self.ended + other.ended,
            shed_in_shadow: self.shed_in_shadow + other.shed_in_shadow,
            held: self.held + other.held,
            left: self.left + other.left,
        }
    }

    /// Received and unaccounted for: a bug if it is not zero.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.received.saturating_sub(self.admitted + self.shed + self.held + self.left)
    }

    /// Admitted and still in the service.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.admitted.saturating_sub(self.ended)
    }
}

impl Ledger {
    pub(super) fn new(classes: usize) -> Self {
        Self { all: GateCounts::default(), classes: vec![GateCounts::default(); classes] }
    }

    pub(super) fn change(&mut self, class: u16, change: impl Fn(&mut GateCounts)) {
        change(&mut self.all);
        // The scenario was checked: every request is of one of its classes.
        change(&mut self.classes[usize::from(class)]);
    }
}
