//! The ledger's columns: what became of every try.

use flashweir_core::Reason;

/// Outcome of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryOutcome {
    /// The whole answer (2xx or 3xx) arrived in time.
    Completed {
        /// It arrived within the target too.
        good: bool,
    },
    /// The service said no (503 or 429) in time.
    Refused {
        /// Its status.
        status: u16,
        /// Flashweir's reason, if it was Flashweir who said so.
        reason: Option<Reason>,
    },
    /// The client gave the try up before the whole answer arrived; the person may try again.
    TimedOut,
    /// The person lost patience before the whole answer arrived and left for good.
    Abandoned,
    /// Something broke.
    Failed(ErrorKind),
}

/// Kind of failure of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// No connection: refused or unreachable.
    Connect,
    /// No TLS session, or one that broke.
    Tls,
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
    pub const ALL: [Self; 8] = [
        Self::Connect,
        Self::Tls,
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
            Self::Tls => "tls",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::Status4xx => "status_4xx",
            Self::Status5xx => "status_5xx",
            Self::GeneratorFull => "generator_full",
            Self::GeneratorSocket => "generator_socket",
        }
    }
}

/// Tries counted by what became of them.
/// `offered = completed + refused + timed_out + abandoned + errors + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tries that began: whose intended moment has passed and that the generator took up.
    pub offered: u64,
    /// Requests: the same, with the tries of one person for one answer counted once.
    pub unique_offered: u64,
    /// Requests handed to a connection.
    pub sent: u64,
    /// Whole answers (2xx or 3xx) in time.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// 503 or 429 in time.
    pub refused: u64,
    /// Of these, 429.
    pub refused_429: u64,
    /// Refusals by Flashweir, by [`Reason`] in the order of [`Reason::ALL`]; the rest came from others.
    pub refused_by_reason: [u64; Reason::ALL.len()],
    /// Tries given up by the client before the whole answer.
    pub timed_out: u64,
    /// Tries under way when the person lost patience and left.
    pub abandoned: u64,
    /// Tries that broke, by [`ErrorKind`] in the order of [`ErrorKind::ALL`].
    pub errors_by_kind: [u64; ErrorKind::ALL.len()],
    /// Bytes of the bodies of whole answers.
    pub body_bytes: u64,
}

impl Counts {
    /// Tries that broke, of every kind.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.errors_by_kind.iter().sum()
    }

    /// Tries of which it is known what became of them.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.completed + self.refused + self.timed_out + self.abandoned + self.errors()
    }

    /// Tries still under way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        // A try is settled once, after being offered, so this cannot wrap; saturating keeps reports alive.
        self.offered.saturating_sub(self.settled())
    }

    pub(crate) fn offer(&mut self, first_try: bool) {
        self.offered += 1;
        self.unique_offered += u64::from(first_try);
    }

    pub(crate) fn settle(&mut self, outcome: TryOutcome, body_bytes: u64) {
        self.body_bytes += body_bytes;
        match outcome {
            TryOutcome::Completed { good } => {
                self.completed += 1;
                self.goodput += u64::from(good);
            }
            TryOutcome::Refused { status, reason } => {
                self.refused += 1;
                self.refused_429 += u64::from(status == 429);
                if let Some(reason) = reason {
                    self.refused_by_reason[reason as usize] += 1;
                }
            }
            TryOutcome::TimedOut => self.timed_out += 1,
            TryOutcome::Abandoned => self.abandoned += 1,
            TryOutcome::Failed(kind) => self.errors_by_kind[kind as usize] += 1,
        }
    }

    /// Adds another ledger's tries to these.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| *mine += theirs);
    }

    /// Counts since `earlier`, an older state of the same ledger.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = *self;
        counts.combine(earlier, |now, then| *now -= then);
        counts
    }

    /// One place names every column, so that none is forgotten in one direction.
    fn combine(&mut self, other: &Self, each: impl Fn(&mut u64, u64)) {
        each(&mut self.offered, other.offered);
        each(&mut self.unique_offered, other.unique_offered);
        each(&mut self.sent, other.sent);
        each(&mut self.completed, other.completed);
        each(&mut self.goodput, other.goodput);
        each(&mut self.refused, other.refused);
        each(&mut self.refused_429, other.refused_429);
        each(&mut self.timed_out, other.timed_out);
        each(&mut self.abandoned, other.abandoned);
        each(&mut self.body_bytes, other.body_bytes);
        for (mine, theirs) in self.refused_by_reason.iter_mut().zip(other.refused_by_reason) {
            each(mine, theirs);
        }
        for (mine, theirs) in self.errors_by_kind.iter_mut().zip(other.errors_by_kind) {
            each(mine, theirs);
        }
    }
}
