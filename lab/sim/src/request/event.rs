//! Events at request level.

use super::slab::Id;

/// A pending event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The schedule's next person comes.
    Come,
    /// A visitor has waited or thought enough.
    Ask(Id),
    /// A visitor loses patience.
    LosePatience(Id),
    /// The time limit of the class's oldest try may be over.
    TimeLimit(u16),
    /// A try reaches the gate.
    Arrive(Id),
    /// The gate learns that the client of a try has gone.
    Depart(Id),
    /// The server may have finished a request.
    Serve,
    /// An answer reaches the client of a try.
    Answer(Id),
    /// One of the gate's workers looks after those who wait.
    CallWorker(u16),
    /// The planner is due.
    Tick,
    /// A fault begins or ends.
    Fault { index: u16, begins: bool },
    /// The router's planner is due.
    RouterTick,
    /// A bin of the packet level's series is over.
    CloseBin,
}

// The queue copies events about; this keeps them small.
const _: () = assert!(size_of::<Event>() <= 16);

/// Kinds of past events, for the event hash: they have fixed numbers, so that adding one changes no hash.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Happened {
    Came = 1,
    Asked = 2,
    LostPatience = 3,
    TimedOut = 4,
    Admitted = 5,
    Shed = 6,
    Departed = 7,
    Served = 8,
    Answered = 9,
    Planned = 10,
    FaultBegan = 11,
    FaultEnded = 12,
    Swallowed = 13,
    Disconnected = 14,
    RouterPlanned = 15,
    Network = 16,
    Held = 17,
    LeftHold = 18,
}
