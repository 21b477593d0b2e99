//! Settings of learning: numbers, and rules. Everything is as shipped but in benches, which find out what
//! depends on each.

use super::model::Constants;
use flashweir_limit::Numbers;

/// Numbers and rules of the planner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// Numbers of the model of the origin, by which a crowd's limit is learned.
    pub constants: Constants,
    /// Numbers of the evidence of calm.
    pub numbers: Numbers,
    /// Rules in force.
    pub rules: Rules,
}

/// Rules that can be left out, one at a time, to measure what each is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The limit does not fall while the evidence says that the origin is short of nothing.
    pub calm: bool,
    /// Long requests hold no place.
    pub long: bool,
    /// A queue that stands has less room.
    pub standing: bool,
}

impl Learning {
    /// As shipped.
    pub const SHIPPED: Self =
        Self { constants: Constants::SHIPPED, numbers: Numbers::SHIPPED, rules: Rules::ALL };
}

impl Rules {
    /// All rules.
    pub const ALL: Self = Self { calm: true, long: true, standing: true };
    /// Names of the rules.
    pub const NAMES: [&str; 3] = ["calm", "long", "standing"];

    /// All rules but the one of this name; none for an unknown name.
    #[must_use]
    pub fn without(name: &str) -> Option<Self> {
        let mut rules = Self::ALL;
        let rule = match name {
            "calm" => &mut rules.calm,
            "long" => &mut rules.long,
            "standing" => &mut rules.standing,
            _ => return None,
        };
        *rule = false;
        Some(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_can_be_left_out_by_its_name() {
        let left_out = Rules::NAMES.map(|name| Rules::without(name).expect("a name of the list"));
        for (at, rules) in left_out.iter().enumerate() {
            assert!(*rules != Rules::ALL && left_out[..at].iter().all(|other| other != rules), "{rules:?}");
        }
        assert_eq!(Rules::without("windows"), None);
    }
}
