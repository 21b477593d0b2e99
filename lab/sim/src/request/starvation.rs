//! Checks that a gate starves no class that it should serve like others.

use super::Scenario;
use flashweir_admission::sentry::{Policing, PublishedRule};

/// Watches that no class is refused for ever by a gate that lets others of its group in.
///
/// A class is starved when, from its last admission to its last try, at least [`EXPECTED`] of its tries
/// would have got through at the share of its group: by chance that happens once in e^50. Where tries are
/// queued, arrival and decision are two moments, and the share is the smaller of two: of the tries that
/// arrived, the part that got a place (was admitted, or queued and not refused since), and of those
/// decided, the part that was admitted. A queued try ends no wait: with such, the bound is that of a
/// Poisson number's lower tail.
#[derive(Debug)]
pub(super) struct Starvation {
    /// Each class's group, tries shed since its last admission, and the group's counts back then and at its
    /// last try.
    classes: Vec<Watched>,
    groups: Vec<Decided>,
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
    group: usize,
    shed: u64,
    held: u64,
    then: Decided,
    last: Decided,
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
    /// Watches a scenario's classes: those who go to the same host and, where classes differ in worth, are of
    /// the same class of the policy get on alike. By costs, a class may rightly get nothing.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let sentry = scenario.policy.sentry_policy();
        Self::new(scenario.classes.iter().zip(0..).map(|(class, number)| match sentry {
            // One client's admissions depend on its earlier ones, and under fairness on what it has in common
            // with others.
            Some(sentry)
                if goes_by_cost(sentry.policy.policing) || class.is_one_client || class.signs.is_some() =>
            {
                (class.host, number, true)
            }
            Some(_) => (class.host, class.policy_class.into(), false),
            None => (class.host, 0, false),
        }))
    }

    /// Of classes, each with the name of those with whom it is to get on alike.
    fn new<Alike: PartialEq>(classes: impl Iterator<Item = Alike>) -> Self {
        let mut names: Vec<Alike> = Vec::new();
        let classes = classes.map(|name| {
            let known = names.iter().position(|known| *known == name);
            let group = known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            Watched { group, ..Watched::default() }
        });
        let classes = classes.collect();
        Self { classes, groups: names.iter().map(|_| Decided::default()).collect() }
    }

    /// The gate decided a try, which it had held or which has just come. O(1); nothing where nothing is
    /// checked.
    pub(super) fn decided(&mut self, class: u16, was_held: bool, admitted: bool) {
        if !cfg!(debug_assertions) {
            return;
        }
        let watched = &mut self.classes[usize::from(class)];
        let group = &mut self.groups[watched.group];
        if !was_held {
            group.offered += 1;
            group.placed += u64::from(admitted);
        } else if !admitted {
            group.placed -= 1;
            // It may have come before the last admission.
            watched.held = watched.held.saturating_sub(1);
        }
        group.admitted += u64::from(admitted);
        group.shed += u64::from(!admitted);
        if admitted {
            *watched = Watched { group: watched.group, shed: 0, held: 0, then: *group, last: *group };
        } else {
            watched.shed += 1;
            watched.last = *group;
        }
    }

    /// The gate holds a try.
    pub(super) fn held(&mut self, class: u16) {
        if !cfg!(debug_assertions) {
            return;
        }
        let watched = &mut self.classes[usize::from(class)];
        let group = &mut self.groups[watched.group];
        group.offered += 1;
        group.placed += 1;
        watched.held += 1;
        watched.last = *group;
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (class, Watched { shed, held, then, last, .. }) in self.classes.iter().enumerate() {
            let share = last.share_since(then);
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

fn goes_by_cost(policing: Policing) -> bool {
    match policing {
        Policing::Batch | Policing::Auto => true,
        Policing::Reservation | Policing::Threshold => false,
        Policing::Published(published) => matches!(published.rule, PublishedRule::Batch { .. }),
    }
}

const EXPECTED: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_never_gets_what_others_get_is_starved_and_a_bystander_does_not_matter() {
        let mut starvation = Starvation::new([0, 0, 1].into_iter());
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
    fn a_class_that_tries_no_more_is_not_starved() {
        let mut starvation = Starvation::new([0, 0].into_iter());
        (0..200).for_each(|_| starvation.decided(0, false, false));
        (0..2_000).for_each(|_| starvation.decided(1, false, true));
        assert_eq!(starvation.check(), Ok(()));
        (0..60).for_each(|_| starvation.decided(0, false, false));
        assert!(starvation.check().is_err());
    }

    #[test]
    fn those_who_are_held_count_as_placed_but_end_no_wait() {
        let check = |held_of_a_hundred: usize| {
            let mut starvation = Starvation::new([0, 0].into_iter());
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
        let mut starvation = Starvation::new([0, 0].into_iter());
        for _ in 0..200 {
            (0..2).for_each(|class| starvation.held(class));
            starvation.decided(0, true, false);
            starvation.decided(1, true, true);
        }
        assert!(starvation.check().unwrap_err().starts_with("class 0 had 200 tries shed in a row, 0 "));
    }
}
