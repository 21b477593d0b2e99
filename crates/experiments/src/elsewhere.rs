//! Figures that no simulation can show: where they are measured.

/// A figure of a paper that a benchmark or the real thing makes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its name, such as `CAT-F4`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says, and where.
    pub paper: &'static str,
    /// The command that measures it.
    pub command: &'static str,
}

/// All there are.
pub const ELSEWHERE: &[Elsewhere] = &[Elsewhere {
    id: "CAT-F4",
    title: "Requests a second that batches and a threshold can refuse",
    paper: "Figure 4 and §3.3: 4,000 requests/s with batches, 19,000 with a threshold, at 90 % of a processor",
    command: "cargo bench -p flashweir-admission --bench decisions",
}];
