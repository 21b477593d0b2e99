//! The numbers that the rule is set by, each with its reason.

/// The largest limit.
pub const LIMIT_MAX: u32 = 65_536;

/// A struct of the numbers of a rule, each with its reason: `SHIPPED`, their `NAMES`, and access by name for
/// sensitivity benches.
#[macro_export]
macro_rules! named_numbers {
    ($(#[$struct_doc:meta])* $vis:vis struct $type:ident { $($(#[$doc:meta])* $name:ident = $value:expr;)* }) => {
        $(#[$struct_doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $type {
            $($(#[$doc])* pub $name: f64,)*
        }

        impl $type {
            /// As shipped.
            pub const SHIPPED: Self = Self { $($name: $value,)* };
            /// Names of all numbers.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// The number of this name; `None` for an unknown name.
            pub fn by_name(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

named_numbers! {
    /// Numbers of the rule. The defaults suit every service measured so far; other values are for sensitivity
    /// benches.
    pub struct Numbers {
        /// Limit while nothing is known: few for one processor, and enough to show how uneven requests are.
        start = 8.0;
        /// Completions that are remembered: to distinguish a number of servers from the next one in the grid
        /// takes a hundred, and evidence at other limits is needed when the load changes.
        memory = 400.0;
        /// Completions, or expected completions, from which on anything is evidence: a rate is then known to
        /// a half.
        enough = 4.0;
        /// Half an octave, the least that is much: stretch above which an origin counts as busy, step of a
        /// raise in a crowd, and one over it the part of a limit that counts as reached.
        much = core::f64::consts::SQRT_2;
        /// Part of the target that the origin may take: the rest is for queueing.
        target_share = 0.75;
        /// Worth of a late answer, relative to one in time: where no limit meets the target, throughput
        /// decides.
        late_worth = 0.05;
        /// Loss of worth if answers take the whole target at the origin, because requests there can no longer
        /// be refused or reordered.
        line_cost = 0.1;
        /// Limits whose worth is within this part of the best are as good, and the lowest of them is taken.
        indifference = 0.003;
        /// Relative error of the model: a stretch is never known better than this.
        model_error = 0.08;
        /// Logarithm of the likelihood ratio at which the origin counts as changed.
        alarm = 6.0;
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::SHIPPED
    }
}
