//! Messages outside of responses, for paths on which few responses come.
//!
//! ```text
//! Flashweir-Overload/1 <sender> <node> <address:port of the server>\n
//! :<base64>:\n
//! ```
//!
//! The address is that by which the sender reaches the server, and part of what is signed:
//! `sender>node@address:port`. So a datagram is of no use for another server of the same name, and none can
//! be made of a response. One without a tag is never believed
//! ([`Intake::take_datagram`](crate::Intake::take_datagram)).

use crate::field::Field;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::net::SocketAddr;

/// The longest datagram: two names of 63 bytes, an address and a field fit twice.
pub const DATAGRAM_BYTES: usize = 512;
/// Its first word.
const LABEL: &str = "Flashweir-Overload/1";

/// A datagram's parts.
///
/// ```
/// use flashweir_feedback::Datagram;
/// let datagram = Datagram::parse(b"Flashweir-Overload/1 shop api 10.0.0.5:80\n:AAAA:\n").unwrap();
/// assert_eq!((datagram.sender, datagram.node, datagram.field), ("shop", "api", &b":AAAA:"[..]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// For whom it is.
    pub sender: &'a str,
    /// The node that speaks.
    pub node: &'a str,
    /// The server of that node.
    pub address: SocketAddr,
    /// The field, unverified.
    pub field: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// The parts; none where it is no datagram of this kind.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > DATAGRAM_BYTES {
            return None;
        }
        let text = core::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let (head, field) = text.split_once('\n')?;
        let mut words = head.split(' ');
        let (label, sender, node, address) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_whole = label == LABEL && words.next().is_none() && !sender.is_empty() && !node.is_empty();
        let address = address.parse().ok()?;
        is_whole.then_some(Self { sender, node, address, field: field.as_bytes() })
    }

    /// Context for which a datagram between these ends is signed.
    #[must_use]
    pub fn context(sender: &str, node: &str, address: SocketAddr) -> Vec<u8> {
        alloc::format!("{sender}>{node}@{address}").into_bytes()
    }

    /// The bytes of a datagram with this field, which is signed for [`context`](Self::context).
    #[must_use]
    pub fn write(sender: &str, node: &str, address: SocketAddr, field: &Field) -> Vec<u8> {
        let mut text = String::with_capacity(DATAGRAM_BYTES);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{LABEL} {sender} {node} {address}");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(field.as_bytes());
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feedback, KeyRing, Mac};
    use flashweir_core::Duration;

    struct NoKey;

    impl Mac for NoKey {
        fn tag(&self, _: &[&[u8]]) -> [u8; 32] {
            [0; 32]
        }
    }

    #[test]
    fn a_datagram_is_two_lines() {
        for wrong in [
            &b""[..],
            b"Flashweir-Overload/1 shop api 10.0.0.5:80\n:AAAA:",
            b"Flashweir-Overload/2 shop api 10.0.0.5:80\n:AAAA:\n",
            b"Flashweir-Overload/1 shop api 10.0.0.5\n:AAAA:\n",
            b"Flashweir-Overload/1 shop api 10.0.0.5:80 x\n:AAAA:\n",
            b"Flashweir-Overload/1  api 10.0.0.5:80\n:AAAA:\n",
            b"\xff\xfe\n\n",
        ] {
            assert_eq!(Datagram::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Datagram::parse(&[b'a'; DATAGRAM_BYTES + 1]), None);
    }

    #[test]
    fn what_is_written_can_be_read_and_the_longest_fits() {
        let ttl = Duration::from_secs(2);
        let feedback = Feedback { epoch: 1, sequence: 2, from_rank: 1, severity: 1, rate: None, ttl };
        let field = Field::new(&feedback, &KeyRing::<NoKey>::empty(), b"").unwrap();
        let (name, address) =
            ("n".repeat(63), "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap());
        let bytes = Datagram::write(&name, &name, address, &field);
        let datagram = Datagram::parse(&bytes).unwrap();
        assert_eq!((datagram.sender, datagram.node, datagram.address), (&*name, &*name, address));
        assert_eq!(datagram.field, field.as_bytes());
        assert_eq!(Datagram::context("shop", "api", "10.0.0.5:80".parse().unwrap()), b"shop>api@10.0.0.5:80");
    }
}
