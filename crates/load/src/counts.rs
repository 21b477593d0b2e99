//! The ledger's columns: what became of everybody who came.

use flashweir_core::Reason;

/// What became of one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole answer (2xx or 3xx) arrived within their patience.
    Completed {
        /// It arrived within the target too.
        good: bool,
    },
    /// The service said no (503 or 429) within their patience.
    Refused {
        /// Flashweir's reason, if it was Flashweir who said so.
        reason: Option<Reason>,
    },
    /// They left before the whole answer arrived.
    TimedOut,
    /// Something broke.
    Failed(ErrorKind),
}

/// How a person's attempt broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// No connection: refused or unreachable.
    Connect,
    /// The connection was reset or closed before the whole answer.
    Closed,
    /// The answer is not HTTP.
    Malformed,
    /// 4xx other than 429.
    Status4xx,
    /// 5xx other than 503.
    Status5xx,
    /// The generator's own bound on people on their way was met.
    GeneratorFull,
    /// The generator's machine gave no socket or address.
    GeneratorSocket,
}

impl ErrorKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Closed,
        Self::Malformed,
        Self::Status4xx,
        Self::Status5xx,
        Self::GeneratorFull,
        Self::GeneratorSocket,
    ];

    /// The spelling used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::GeneratorFull => "generator_full",
            Self::GeneratorSocket => "generator_socket",
        }
    }
}

/// People counted by what became of them. `offered = completed + refused + timed_out + errors + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// People who came: whose intended moment has passed and whom the generator took up.
    pub offered: u64,
    /// The same people, each counted once however often they tried. Equal to `offered`: nobody retries yet.
    pub unique_offered: u64,
    /// Requests handed to a connection.
    pub sent: u64,
    /// Whole answers (2xx or 3xx) within patience.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// 503 or 429 within patience.
    pub refused: u64,
    /// Refusals by Flashweir, by [`Reason`] in the order of [`Reason::ALL`]; the rest came from others.
    pub refused_by_reason: [u64; Reason::ALL.len()],
    /// People who left before the whole answer.
    pub timed_out: u64,
    /// Attempts that broke, by [`ErrorKind`] in the order of [`ErrorKind::ALL`].
    pub errors_by_kind: [u64; ErrorKind::ALL.len()],
}

impl Counts {
    /// Attempts that broke, of every kind.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors_by_kind.iter().sum()
    }

    /// People of whom it is known what became of them.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.completed + self.refused + self.timed_out + self.errors()
    }

    /// People still on their way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        // A person is settled once, after being offered, so this cannot wrap; saturating keeps reports alive.
        self.offered.saturating_sub(self.settled())
    }

    pub(crate) fn offer(&mut self) {
        self.offered += 1;
        self.unique_offered += 1;
    }

    pub(crate) fn settle(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Completed { good } => {
                self.completed += 1;
                self.goodput += u64::from(good);
            }
            Outcome::Refused { reason } => {
                self.refused += 1;
                if let Some(reason) = reason {
                    self.refused_by_reason[reason as usize] += 1;
                }
            }
            Outcome::TimedOut => self.timed_out += 1,
            Outcome::Failed(kind) => self.errors_by_kind[kind as usize] += 1,
        }
    }

    /// Adds another ledger's people to these.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.unique_offered += other.unique_offered;
        self.sent += other.sent;
        self.completed += other.completed;
        self.goodput += other.goodput;
        self.refused += other.refused;
        self.timed_out += other.timed_out;
        add_each(&mut self.refused_by_reason, &other.refused_by_reason);
        add_each(&mut self.errors_by_kind, &other.errors_by_kind);
    }

    /// What was counted here since `earlier`, an older state of the same ledger.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = *self;
        counts.offered -= earlier.offered;
        counts.unique_offered -= earlier.unique_offered;
        counts.sent -= earlier.sent;
        counts.completed -= earlier.completed;
        counts.goodput -= earlier.goodput;
        counts.refused -= earlier.refused;
        counts.timed_out -= earlier.timed_out;
        for (now, then) in counts.refused_by_reason.iter_mut().zip(earlier.refused_by_reason) {
            *now -= then;
        }
        for (now, then) in counts.errors_by_kind.iter_mut().zip(earlier.errors_by_kind) {
            *now -= then;
        }
        counts
    }
}

fn add_each(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
