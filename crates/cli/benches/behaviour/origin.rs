//! The origin of a case: acts on a scripted server, each connection from the first act on.

use crate::case::Act;
use flashweir_testkit::{Connection, Upstream};

/// Starts it on a free port; its threads end with it.
pub(crate) fn start(acts: &[Act]) -> Upstream {
    let acts = acts.to_vec();
    Upstream::start(move |connection| while play(connection, &acts) {})
}

/// Plays the acts once; false when the connection is over.
fn play(connection: &mut Connection, acts: &[Act]) -> bool {
    let mut request = None;
    for act in acts {
        match act {
            Act::Request => {
                if connection.read_request().is_none() {
                    return false;
                }
            }
            Act::Head => {
                request = connection.read_head();
                if request.is_none() {
                    return false;
                }
            }
            Act::Body => {
                if !request.as_mut().is_some_and(|request| connection.read_body(request)) {
                    return false;
                }
            }
            Act::Send(bytes) => {
                if !connection.send(bytes) {
                    return false;
                }
            }
            // A part of the script: the origin takes this long.
            Act::Pause(time) => std::thread::park_timeout(*time),
            Act::Close => return false,
            Act::Linger => {
                connection.finish_writing();
                connection.stall();
                return false;
            }
        }
    }
    true
}
