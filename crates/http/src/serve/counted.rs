//! Counts a connection's requests from the service's call to the response's end.

use super::Connection;
use tokio::time::Instant;

/// One request in flight on its connection.
#[derive(Debug)]
pub(super) struct InFlight(Connection);

impl InFlight {
    pub(super) fn begin(connection: &Connection) -> Self {
        connection.state.requests.set(connection.state.requests.get() + 1);
        connection.state.guard.end().begin();
        Self(connection.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let state = &self.0.state;
        if state.guard.end().end() {
            state.idle_since.set(Instant::now());
        }
    }
}
