//! Comparison of a number with a bound, as it is written.

/// An operator between a number and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Operator {
    /// All of them; those of two characters first, so that `>=` is not read as `>`.
    pub const ALL: [Self; 5] = [Self::AtLeast, Self::AtMost, Self::Equal, Self::Above, Self::Below];

    /// The operator that `text` begins with, and what follows it.
    #[must_use]
    pub fn read(text: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|operator| Some((operator, text.strip_prefix(operator.sign())?)))
    }

    /// Returns whether the value stands so to the bound; what is no number does not.
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::Above => value > bound,
            Self::Below => value < bound,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::Above => ">",
            Self::Below => "<",
        }
    }
}
