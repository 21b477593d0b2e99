//! The numbers that the rule is set by. Beside them there are the grid of origins, bounds of tables, and what
//! belongs to measuring: of samples (`measured`, `work`, `pace`). The effect of halving or doubling each is
//! in the documentation and is printed by `cargo bench -p flashweir-sim --bench capacity -- sensitivity`.

flashweir_limit::named_numbers! {
    /// The numbers of the rule that learns the limit, each with its reason. None has to be set: other ones
    /// are for finding out what depends on them.
    pub struct Constants {
        /// Requests in flight while nothing is known: few for one processor, and enough to tell how uneven
        /// requests are.
        start = 8.0;
        /// Completions of regular requests that are remembered: to tell a number of servers from the next one
        /// in the grid takes a hundred, and what is remembered of other limits is needed when the load
        /// changes.
        memory = 400.0;
        /// One window makes what is remembered older by this part at most, or the windows of a fast service
        /// would outvote everything else within a second.
        window_share = 0.01;
        /// Completions over which it is averaged what requests usually take: by that it is seen that far
        /// fewer come back.
        usual_count = 20.0;
        /// While the limit does not bind evidence is taken over so often, seconds: often enough to know the
        /// origin when a crowd comes.
        quiet_s = 0.5;
        /// Completions of regular requests from which on anything is evidence: their mean is known to a half.
        enough = 4.0;
        /// Changes of the origin are looked for at this factor, its second and its fourth root; completions
        /// are far fewer than usual if they are fewer by this factor. The number of servers is known if its
        /// standard deviation is the root, and until then an origin may do more than it did by this factor. A
        /// limit is lowered to less than a half where with a half the share of answers in time is below one
        /// over it.
        factor = core::f64::consts::E;
        /// The share of requests in flight that may be older than half of the time since the limit moved:
        /// with more of them, short requests have ended under the new limit and long ones have not.
        old_share = 0.15;
        /// Half an octave, the least that is much: if twice as many in flight do more by this factor, they
        /// are let in before there is evidence. One over it is the part of a limit that counts as reached,
        /// and the part of what is in flight that an origin which refuses gets.
        much = core::f64::consts::SQRT_2;
        /// The part of the target that the origin may take: the rest is for waiting at the gate.
        target_share = 0.75;
        /// Worth of a late answer relative to one in time: where no limit meets the target, throughput
        /// decides.
        late_worth = 0.05;
        /// Part of its worth that a limit loses if answers take the whole target at the origin: requests
        /// there can no longer be refused or put in order.
        line_cost = 0.1;
        /// Limits that are worth as much as the best to this part are as good, and the lowest of them is
        /// taken.
        indifference = 0.003;
        /// Relative error of the model. Smaller differences are noise: between origins, between times before
        /// and after a change, and in the share of answers in time for which a limit is lowered while no
        /// request is refused.
        model_error = 0.05;
        /// Log-likelihood ratio by which another origin must exceed the known one, so that chance seldom
        /// raises a false alarm; from half of it on windows are withheld from the evidence, and one window
        /// adds half at most, so that an alarm takes two.
        alarm = 6.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_name() {
        let mut constants = Constants::SHIPPED;
        for name in Constants::NAMES {
            *constants.by_name(name).expect("a name of the list") += 1.0;
        }
        assert_eq!(constants.memory, Constants::SHIPPED.memory + 1.0);
        assert_eq!(constants.alarm, Constants::SHIPPED.alarm + 1.0);
        assert_eq!(constants.by_name("limit"), None);
        assert!(Constants::NAMES.len() <= 15, "each has a row in the documentation");
    }
}
