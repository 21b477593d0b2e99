//! Messages between threads and machines: what is decoded is encoded as a value that is the same bit for bit.
//!
//! The first byte chooses the message.

use flashweir_admission::{flash_crowd, sentry};
use flashweir_wire::{Message, VERSION, decode, differences, encode};

pub(crate) fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    match kind % 6 {
        0 => check::<flash_crowd::Sample>(rest),
        1 => check::<flash_crowd::Plan>(rest),
        2 => check::<flash_crowd::Explanation>(rest),
        3 => check::<sentry::Sample>(rest),
        4 => check::<sentry::Plan>(rest),
        _ => check::<sentry::Explanation>(rest),
    }
}

/// As the bytes come, and behind a right beginning: version and kind say little of the rest.
fn check<T: Message>(rest: &[u8]) {
    check_whole::<T>(rest);
    check_whole::<T>(&[&[VERSION, T::KIND], rest].concat());
}

fn check_whole<T: Message>(bytes: &[u8]) {
    let message: T = match decode(bytes) {
        Ok(message) => message,
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.starts_with(T::NAME) && !shown.contains('\n'), "{shown}");
            return;
        }
    };
    let encoded = encode(&message);
    let again: T = decode(&encoded).unwrap_or_else(|error| panic!("what was written: {error}"));
    assert_eq!(differences(&message, &again), []);
    assert_eq!(encode(&again), encoded);
}
