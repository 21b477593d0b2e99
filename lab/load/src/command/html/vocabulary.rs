//! Meaning of the words on the page.

use crate::report::Section;

const WORDS: [&str; 9] = [
    "A person comes at a moment fixed before the run and makes one or more requests; each request may take several \
     tries.",
    "Offered: tries that began. Unique offered: requests, however many tries each took. Retry amplification is the \
     first over the second.",
    "Completed: the whole answer (2xx or 3xx) arrived in time. Goodput: it also arrived within the target. Late: \
     completed, but after the target.",
    "Refused: the service said no (503 or 429) in time.",
    "Timed out: the client gave one try up before its whole answer; the person may try again.",
    "Abandoned: the person lost patience while a try was under way and left for good.",
    "Errors: tries that broke, by what broke them; also answers of any other status.",
    "Offered is completed, refused, timed out, abandoned, errors and in flight together: every try is accounted for.",
    "Lag: from the moment at which a try was to begin to its real beginning. p99: 99 % of the values are at most \
     this.",
];

/// The section.
pub(super) fn section() -> Section {
    WORDS.into_iter().fold(Section::new("What the words mean"), Section::text)
}
