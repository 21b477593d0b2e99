//! Invariants after every step of a run, in any scenario: conservation, bounds, no starvation.

use super::books::Counts;
use super::clients::Doing;
use super::world::{TryState, World};
use crate::engine::Check;

/// Cheap ones, for after every step.
pub(super) fn after_every_step<'a>() -> [Check<World<'a>>; 5] {
    [
        ("client conservation", clients_add_up),
        ("gate conservation", gate_adds_up),
        ("gate and policy", |world| world.gate.check(world.now())),
        ("server bounds", |world| world.server.check()),
        ("no starvation", |world| world.starvation.check()),
    ]
}

/// Expensive ones, which look at every visitor and try.
pub(super) fn now_and_then<'a>() -> [Check<World<'a>>; 3] {
    [
        ("everybody asking is known", everybody_asking_is_known),
        ("tries are where they are counted", tries_are_where),
        ("packets and connections", packets_add_up),
    ]
}

/// offered = completed + refused + timed out + abandoned + broken + in flight, with the latter counted by
/// itself.
fn clients_add_up(world: &World<'_>) -> Result<(), String> {
    let counts = world.books.totals();
    let Counts { offered, unique_offered, completed, goodput, .. } = counts;
    let in_flight = world.asking;
    if offered != counts.settled() + in_flight {
        return Err(format!("{counts:?} do not add up with {in_flight} in flight"));
    }
    if unique_offered > offered || goodput > completed {
        return Err(format!("{counts:?}: a part is larger than the whole"));
    }
    Ok(())
}

/// received = admitted + shed + held + left: no request is lost; and the books agree with the gate on each
/// class.
fn gate_adds_up(world: &World<'_>) -> Result<(), String> {
    let (gate, server) = (world.gate.counts(), world.server.counts());
    if gate.lost() != 0 || gate.ended > gate.admitted {
        return Err(format!("{gate:?} do not add up"));
    }
    for (book, gate) in world.books.classes.iter().zip(world.gate.counts_by_class()) {
        let (admitted, shed) = (book.totals.admitted, book.totals.shed_total());
        if (admitted, shed) != (gate.admitted, gate.shed) || gate.lost() != 0 {
            return Err(format!("booked {admitted} and {shed} of one class, but {gate:?}"));
        }
    }
    if world.scenario.requests_in_flight.is_some_and(|most| gate.in_flight() > most) {
        return Err(format!("{} in flight, more than allowed", gate.in_flight()));
    }
    if server.accepted + server.refused + server.dropped > gate.admitted {
        return Err(format!("the server saw more ({server:?}) than was admitted ({})", gate.admitted));
    }
    Ok(())
}

fn everybody_asking_is_known(world: &World<'_>) -> Result<(), String> {
    let asking = world.visitors.iter().filter(|visitor| visitor.doing == Doing::Asking).count() as u64;
    (asking == world.asking)
        .then_some(())
        .ok_or_else(|| format!("{asking} visitors ask, {} are counted", world.asking))
}

fn tries_are_where(world: &World<'_>) -> Result<(), String> {
    let (mut served, mut deserted, mut held) = (0, 0, 0);
    for attempt in world.tries.iter() {
        match attempt.state {
            TryState::AtServer(_) => served += 1,
            TryState::Deserted => deserted += 1,
            TryState::Held(_) => held += 1,
            TryState::ToGate | TryState::ToClient(_) | TryState::Dropped | TryState::Answered(_) => {}
        }
    }
    let (in_flight, present) = (world.gate.counts().in_flight(), world.server.present() as u64);
    if held != world.gate.counts().held {
        return Err(format!("{held} tries are held, but {:?}", world.gate.counts()));
    }
    if (served, served + deserted) != (in_flight, present) {
        return Err(format!(
            "{served} tries are being served and {deserted} for nobody, but {in_flight} are in flight and {present} \
             at the server"
        ));
    }
    Ok(())
}

/// Every try but those whose client is known to have gone has its connection.
fn packets_add_up(world: &World<'_>) -> Result<(), String> {
    let Some((_, packets)) = &world.packets else { return Ok(()) };
    packets.check(world.tries.iter().filter(|attempt| attempt.state != TryState::Deserted).count())
}
