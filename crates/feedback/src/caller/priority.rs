//! The standard field `Priority` (RFC 9218), as far as it says what is more important.

/// Urgencies: 0 the most important, 7 the least.
const URGENCY_MAX: u8 = 7;

/// The urgency of a value: the last `u` of the Dictionary, if it is an Integer from 0 to 7. None where there
/// is no valid one; RFC 9218 §4.1 then says 3, but a sender's default rank says more.
#[must_use]
pub fn urgency(value: &[u8]) -> Option<u8> {
    let members = value.split(|&byte| byte == b',');
    members.rev().find_map(|member| {
        // Parameters of a member have no meaning here.
        let item = member.split(|&byte| byte == b';').next()?.trim_ascii();
        match item.strip_prefix(b"u=") {
            Some(&[digit @ b'0'..=b'9']) => Some((digit - b'0' <= URGENCY_MAX).then_some(digit - b'0')),
            Some(_) => Some(None),
            None => None,
        }
    })?
}

#[cfg(test)]
mod tests {
    use super::urgency;

    #[test]
    fn the_last_urgency_counts() {
        for (value, expected) in [
            ("u=0", Some(0)),
            ("i, u=5", Some(5)),
            ("u=7;a=1, i", Some(7)),
            ("u=1, u=4", Some(4)),
            ("u=1, u=8", None),
            ("u=-1", None),
            ("u", None),
            ("", None),
            ("U=1", None),
            ("i", None),
        ] {
            assert_eq!(urgency(value.as_bytes()), expected, "{value}");
        }
    }
}
