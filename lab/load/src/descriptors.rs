//! Open files: each person on their way needs one.

use flashweir_core::limits::LOAD_REQUESTS_IN_FLIGHT;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left for everything that is not a person: timers, event queues, standard streams.
const RESERVED: u64 = 64;

/// Raises this process's limit on open files to the most it may have, and returns how many people may be on
/// their way at once.
pub(crate) fn raise_and_count() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Not allowed to raise it: the run then goes on with what there is.
    let open_files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let most = LOAD_REQUESTS_IN_FLIGHT as u64;
    let people = open_files.map_or(most, |files| files.saturating_sub(RESERVED).clamp(1, most));
    // At most LOAD_REQUESTS_IN_FLIGHT, which is a usize.
    people as usize
}
