//! Options of a bench, from the environment.

use std::env;

/// The text of a variable; `None` if it is not set or no text.
pub(crate) fn text(name: &str) -> Option<String> {
    env::var_os(name).and_then(|text| text.into_string().ok())
}

/// Subset of `all` that the variable ONLY names by their keys, separated by commas: all without it, none for
/// `none`.
///
/// # Errors
/// A key that none of them has.
pub(crate) fn asked<Origin: Copy>(
    all: &[Origin],
    key: impl Fn(Origin) -> &'static str,
) -> Result<Vec<Origin>, String> {
    let Some(only) = text("ONLY").filter(|only| !only.is_empty()) else { return Ok(all.to_vec()) };
    let keys: Vec<&str> = only.split(',').collect();
    let is_known = |asked: &&str| *asked == "none" || all.iter().any(|origin| key(*origin) == *asked);
    if let Some(unknown) = keys.iter().find(|asked| !is_known(asked)) {
        return Err(format!("ONLY names {unknown:?}, which is no origin"));
    }
    Ok(all.iter().copied().filter(|origin| keys.contains(&key(*origin))).collect())
}

/// Returns whether the static limit that an earlier invocation found is to be taken.
pub(crate) fn is_search_stored() -> bool {
    text("SEARCH").is_some_and(|search| search == "stored")
}
