//! Numbers that benches and long tests take from the environment: `ROUNDS`, `SECONDS`, `SEED`.

use std::ffi::{OsStr, OsString};
use std::str::FromStr;

/// The number in the environment variable `name`; `usual` where it is not set, or empty.
///
/// # Panics
/// If the variable is anything else: a long measurement must not run with another number than the one asked
/// for.
#[must_use]
pub fn number_from_environment<T: FromStr>(name: &str, usual: T) -> T {
    number(name, std::env::var_os(name), usual)
}

fn number<T: FromStr>(name: &str, text: Option<OsString>, usual: T) -> T {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return usual };
    let number = OsStr::to_str(&text).and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| {
        panic!("{name}: expected a number of type {} (is {text:?})", std::any::type_name::<T>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_and_nothing_is_the_usual() {
        assert_eq!(number("ROUNDS", Some("7".into()), 3_u64), 7);
        assert_eq!(number("OVERLOAD", Some("2.5".into()), 3.0_f64), 2.5);
        assert_eq!((number("ROUNDS", None, 3), number("ROUNDS", Some("".into()), 3)), (3, 3));
    }

    #[test]
    #[should_panic(expected = "ROUNDS: expected a number of type u64 (is \"z\")")]
    fn anything_else_is_an_error() {
        number("ROUNDS", Some("z".into()), 3_u64);
    }
}
