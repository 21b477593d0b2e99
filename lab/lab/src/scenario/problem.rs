//! Result of a check, before it is known where the value was written.

/// A key's full path and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) what: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into() }
    }
}

/// A problem as a result.
pub(crate) fn wrong<T>(key: impl Into<String>, what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::new(key, what))
}

/// The value, if it is a finite number within the bounds.
pub(crate) fn within(key: impl Into<String>, value: f64, from: f64, to: f64) -> Result<f64, Problem> {
    if (from..=to).contains(&value) {
        Ok(value)
    } else {
        wrong(key, format!("{value} is out of range: expected {from} to {to}"))
    }
}
