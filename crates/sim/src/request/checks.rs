//! What must hold after every step of a run, whatever the scenario: conservation, bounds, and nobody starved.

use super::ClassModel;
use super::books::Counts;
use super::clients::Doing;
use super::world::{Place, World};
use crate::engine::Check;

/// Cheap ones, for after every step.
pub(super) fn after_every_step<'a>() -> [Check<World<'a>>; 4] {
    [
        ("client conservation", clients_add_up),
        ("gate conservation", gate_adds_up),
        ("server bounds", |world| world.server.check()),
        ("no starvation", |world| world.starvation.check()),
    ]
}

/// Those that look at everybody.
pub(super) fn now_and_then<'a>() -> [Check<World<'a>>; 3] {
    [
        ("everybody asking is known", everybody_asking_is_known),
        ("tries are where they are counted", tries_are_where),
        ("packets and connections", packets_add_up),
    ]
}

/// offered = completed + refused + timed out + abandoned + broken + in flight, with the latter counted by itself.
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

/// received = admitted + shed: nobody is lost; and the books say what the gate says.
fn gate_adds_up(world: &World<'_>) -> Result<(), String> {
    let (gate, server, booked) = (world.gate.counts(), world.server.counts(), world.books.totals());
    if gate.lost() != 0 || gate.ended > gate.admitted {
        return Err(format!("{gate:?} do not add up"));
    }
    if (booked.admitted, booked.shed_total()) != (gate.admitted, gate.shed) {
        return Err(format!("booked {} and {}, but {gate:?}", booked.admitted, booked.shed_total()));
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
        match attempt.place {
            Place::AtServer(_) => served += 1,
            Place::Deserted => deserted += 1,
            Place::Held(_) => held += 1,
            Place::ToGate | Place::ToClient(_) | Place::Dropped | Place::Answered(_) => {}
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
    packets.check(world.tries.iter().filter(|attempt| attempt.place != Place::Deserted).count())
}

/// Watches that no class is refused for ever by a gate that lets others to the same host in.
///
/// A class is starved when, since one of its own was last admitted, so many tries got through that at least
/// [`EXPECTED`] of them would be its own had they been drawn from all: by chance that happens once in e^50. Where tries
/// are held, coming and being decided are two moments, and both have to say so: of those who came, the part that got a
/// place (was admitted, or held until that ended in a refusal), and of those decided, the part that was admitted. One
/// that is held ends no wait: with such, the bound is that of a Poisson number's lower tail.
#[derive(Debug)]
pub(super) struct Starvation {
    /// Each class's place in `hosts`, tries shed since its last admission, and the host's counts back then.
    classes: Vec<Watched>,
    hosts: Vec<(u32, Decided)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Decided {
    offered: u64,
    /// Admitted, or held and not refused.
    placed: u64,
    admitted: u64,
    shed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    host: usize,
    shed: u64,
    held: u64,
    then: Decided,
}

impl Decided {
    /// The part of tries since `then` that got through.
    fn share_since(&self, then: &Self) -> f64 {
        let (admitted, shed) = (self.admitted - then.admitted, self.shed - then.shed);
        let placed = self.placed.saturating_sub(then.placed) as f64;
        (placed / (self.offered - then.offered).max(1) as f64)
            .min(admitted as f64 / (admitted + shed).max(1) as f64)
    }
}

impl Starvation {
    pub(super) fn new(classes: &[ClassModel]) -> Self {
        let mut hosts: Vec<(u32, Decided)> = Vec::new();
        let classes = classes.iter().map(|class| {
            let known = hosts.iter().position(|(host, _)| *host == class.host);
            let host = known.unwrap_or_else(|| {
                hosts.push((class.host, Decided::default()));
                hosts.len() - 1
            });
            Watched { host, ..Watched::default() }
        });
        Self { classes: classes.collect(), hosts }
    }

    /// The gate decided a try, which it had held or which has just come. O(1); nothing where nothing is checked.
    pub(super) fn decided(&mut self, class: u16, was_held: bool, admitted: bool) {
        if !cfg!(debug_assertions) {
            return;
        }
        let watched = &mut self.classes[usize::from(class)];
        let (_, host) = &mut self.hosts[watched.host];
        if !was_held {
            host.offered += 1;
            host.placed += u64::from(admitted);
        } else if !admitted {
            host.placed -= 1;
            // It may have come before the last admission.
            watched.held = watched.held.saturating_sub(1);
        }
        host.admitted += u64::from(admitted);
        host.shed += u64::from(!admitted);
        if admitted {
            *watched = Watched { host: watched.host, shed: 0, held: 0, then: *host };
        } else {
            watched.shed += 1;
        }
    }

    /// The gate holds a try.
    pub(super) fn held(&mut self, class: u16) {
        if !cfg!(debug_assertions) {
            return;
        }
        let watched = &mut self.classes[usize::from(class)];
        let (_, host) = &mut self.hosts[watched.host];
        host.offered += 1;
        host.placed += 1;
        watched.held += 1;
    }

    fn check(&self) -> Result<(), String> {
        for (class, Watched { host, shed, held, then }) in self.classes.iter().enumerate() {
            let share = self.hosts[*host].1.share_since(then);
            let expected = (shed + held) as f64 * share;
            let placed = *held as f64;
            let chance = if placed > 0.0 { placed * libm::log(placed / expected) } else { 0.0 };
            if expected > placed && expected - placed + chance >= EXPECTED {
                return Err(format!(
                    "class {class} had {shed} tries shed in a row, {held} more were held; {expected:.0} should have passed"
                ));
            }
        }
        Ok(())
    }
}

const EXPECTED: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Work;
    use flashweir_core::Duration;

    fn class(host: u32) -> ClassModel {
        ClassModel { host, ..ClassModel::new("one", Work::Constant(Duration::ZERO)) }
    }

    #[test]
    fn a_class_that_never_gets_what_others_get_is_starved_and_a_bystander_does_not_matter() {
        let mut starvation = Starvation::new(&[class(0), class(0), class(1)]);
        for _ in 0..540 {
            // One in ten of class 1 passes, none of class 0, and all of another host's class 2.
            starvation.decided(0, false, false);
            starvation.decided(2, false, true);
            (0..10).for_each(|turn| starvation.decided(1, false, turn == 0));
        }
        assert_eq!(starvation.check(), Ok(()));
        for _ in 0..20 {
            starvation.decided(0, false, false);
            (0..10).for_each(|turn| starvation.decided(1, false, turn == 0));
        }
        assert!(starvation.check().unwrap_err().starts_with("class 0 had 560 tries shed in a row, 0 "));
        starvation.decided(0, false, true);
        assert_eq!(starvation.check(), Ok(()));
    }

    #[test]
    fn those_who_are_held_count_as_placed_but_end_no_wait() {
        let check = |held_of_a_hundred: usize| {
            let mut starvation = Starvation::new(&[class(0), class(0)]);
            for turn in 0..2_000 {
                if turn % 100 < held_of_a_hundred {
                    starvation.held(0)
                } else {
                    starvation.decided(0, false, false)
                }
                starvation.decided(1, false, turn % 5 == 0);
            }
            starvation.check()
        };
        assert_eq!(check(20), Ok(()));
        assert!(check(0).is_err() && check(1).is_err() && check(3).is_err());
    }

    #[test]
    fn a_class_that_is_always_held_and_then_refused_is_starved() {
        let mut starvation = Starvation::new(&[class(0), class(0)]);
        for _ in 0..200 {
            (0..2).for_each(|class| starvation.held(class));
            starvation.decided(0, true, false);
            starvation.decided(1, true, true);
        }
        assert!(starvation.check().unwrap_err().starts_with("class 0 had 200 tries shed in a row, 0 "));
    }
}
