//! The header of the PROXY protocol, versions 1 and 2 (HAProxy, `doc/proxy-protocol.txt`), at the beginning
//! of a connection: a load balancer that passes on TCP names its client in it.
//!
//! Exactly the header is taken from the socket: TLS or HTTP finds the bytes behind it untouched. Where the
//! header ends is found here, so that no more is read; the crate `proxy-header` reads the whole one.

use flashweir_core::limits::PROXY_HEADER_BYTES;
use proxy_header::{ParseConfig, ProxyHeader};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Bytes of the longest line of version 1, its end included.
const LINE_BYTES: usize = 107;
const LINE_START: &[u8] = b"PROXY ";
const BINARY_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and protocol, length of the rest.
const BINARY_FIXED_BYTES: usize = 16;

/// Reason for which a connection has no usable header.
#[derive(Debug, thiserror::Error)]
pub enum ProxyHeaderError {
    /// It was closed before its first byte, as a load balancer's probes do.
    #[error("closed before its PROXY protocol header")]
    Closed,
    /// It was closed within the header.
    #[error("closed within its PROXY protocol header")]
    Cut,
    /// Its first bytes are those of neither version.
    #[error("does not begin with a PROXY protocol header")]
    Absent,
    /// Its header breaks the rules of its version.
    #[error("its PROXY protocol header is malformed")]
    Malformed,
    /// Its header is longer than the protocol or this program allows.
    #[error("its PROXY protocol header is longer than {0} bytes")]
    TooLong(usize),
    /// The transport failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Takes the header from the beginning of a connection, and nothing of what follows. Returns the address it
/// names; `None` if the load balancer speaks for itself (LOCAL, UNKNOWN) or for a client without an address.
///
/// # Errors
/// [`ProxyHeaderError`]; the connection is of no use then.
pub async fn read_proxy_header(stream: &TcpStream) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut header = [0; PROXY_HEADER_BYTES];
    let mut taken = 0;
    loop {
        let peeked = stream.peek(&mut header[taken..]).await?;
        if peeked == 0 {
            return Err(if taken == 0 { ProxyHeaderError::Closed } else { ProxyHeaderError::Cut });
        }
        let Extent { bytes, is_whole } = extent(&header[..taken + peeked])?;
        // A part of the header is taken, too: as long as it lay in the socket, the socket would be readable.
        while taken < bytes {
            match stream.try_read(&mut header[taken..bytes])? {
                0 => return Err(ProxyHeaderError::Cut),
                count => taken += count,
            }
        }
        if is_whole {
            return source(&header[..bytes]);
        }
    }
}

/// Bytes received that belong to the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    bytes: usize,
    is_whole: bool,
}

/// Finds how far the header reaches in what has come of the connection.
fn extent(received: &[u8]) -> Result<Extent, ProxyHeaderError> {
    let begins = |start: &[u8]| received.iter().zip(start).all(|(one, other)| one == other);
    let part = Extent { bytes: received.len(), is_whole: false };
    if begins(LINE_START) {
        let line = &received[..received.len().min(LINE_BYTES)];
        return match line.iter().position(|&byte| byte == b'\n') {
            Some(end) => Ok(Extent { bytes: end + 1, is_whole: true }),
            None if line.len() == LINE_BYTES => Err(ProxyHeaderError::TooLong(LINE_BYTES)),
            None => Ok(part),
        };
    }
    if !begins(BINARY_START) {
        return Err(ProxyHeaderError::Absent);
    }
    let Some([.., high, low]) = received.get(..BINARY_FIXED_BYTES) else { return Ok(part) };
    let bytes = BINARY_FIXED_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    if bytes > PROXY_HEADER_BYTES {
        return Err(ProxyHeaderError::TooLong(PROXY_HEADER_BYTES));
    }
    Ok(if received.len() < bytes { part } else { Extent { bytes, is_whole: true } })
}

/// The source address that a whole header names.
fn source(header: &[u8]) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    // Its additional fields (TLV) are not looked at.
    let config = ParseConfig { include_tlvs: false, ..ParseConfig::default() };
    match ProxyHeader::parse(header, config) {
        Ok((parsed, bytes)) if bytes == header.len() => {
            Ok(parsed.proxied_address().map(|address| address.source))
        }
        Ok(_) | Err(_) => Err(ProxyHeaderError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    const LINE: &[u8] = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n";

    /// A header of version 2: version and command, family and protocol, the rest.
    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("a short rest").to_be_bytes();
        [BINARY_START, &[command, family], &length, rest].concat()
    }

    fn ipv4() -> Vec<u8> {
        binary(0x21, 0x11, &[203, 0, 113, 7, 192, 0, 2, 1, 0x12, 0x67, 1, 0xbb])
    }

    fn ipv6() -> Vec<u8> {
        let source: [u8; 16] = "2001:db8::7".parse::<std::net::Ipv6Addr>().expect("an address").octets();
        binary(0x21, 0x21, &[&source[..], &source, &[0x12, 0x67, 1, 0xbb]].concat())
    }

    /// As the connection's reader does, with all of the bytes there at once.
    fn of(received: &[u8]) -> Result<(Option<SocketAddr>, usize), ProxyHeaderError> {
        let Extent { bytes, is_whole } = extent(received)?;
        assert!(is_whole, "a whole header");
        source(&received[..bytes]).map(|source| (source, bytes))
    }

    #[test]
    fn both_versions_name_the_client() {
        let named = |header: &[u8], expected: Option<&str>| {
            let followed = [header, b"GET / HTTP/1.1\r\n"].concat();
            let (source, bytes) = of(&followed).expect("a header");
            assert_eq!(source, expected.map(|text| text.parse().unwrap()));
            assert_eq!(bytes, header.len(), "nothing of the rest belongs to it");
        };
        named(LINE, Some("203.0.113.7:4711"));
        named(b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n", Some("[2001:db8::7]:4711"));
        named(b"PROXY UNKNOWN\r\n", None);
        named(b"PROXY UNKNOWN ffff:: ffff:: 1 2\r\n", None);
        named(&ipv4(), Some("203.0.113.7:4711"));
        named(&ipv6(), Some("[2001:db8::7]:4711"));
        named(&binary(0x20, 0, &[]), None);
        // LOCAL; the addresses behind it are of no account.
        named(&binary(0x20, 0x11, &[0; 12]), None);
        named(&binary(0x21, 0, &[]), None);
        // Of a socket of the system (AF_UNIX).
        named(&binary(0x21, 0x31, &[b'/'; 216]), None);
        // Additional fields are passed over.
        let mut more = ipv4();
        more[15] += 5;
        more.extend_from_slice(&[0x04, 0, 2, 0, 0]);
        named(&more, Some("203.0.113.7:4711"));
        let longest = binary(0x20, 0, &[0; PROXY_HEADER_BYTES - BINARY_FIXED_BYTES]);
        named(&longest, None);
    }

    #[test]
    fn other_bytes_are_no_header_and_wrong_ones_are_malformed() {
        use ProxyHeaderError::{Absent, Malformed, TooLong};
        let fails = |received: &[u8]| of(received).expect_err("no header");
        for received in
            [&b"GET / HTTP/1.1\r\n"[..], b"PROXYTCP4", b"PRI * HTTP/2.0", b"\x16\x03\x01", b"\r\n\r\nGET"]
        {
            assert!(matches!(fails(received), Absent), "{received:?}");
        }
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY TCP4 203.0.113.7 192.0.2.1 4711\r\n",
            "PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\n",
            "PROXY TCP4 203.0.113.7 192.0.2.1 4711 65536\r\n",
            "PROXY TCP4 203.0.113.256 192.0.2.1 4711 443\r\n",
            "PROXY TCP4 2001:db8::7 2001:db8::1 4711 443\r\n",
            "PROXY TCP6 203.0.113.7 192.0.2.1 4711 443\r\n",
            "PROXY TCP5 203.0.113.7 192.0.2.1 4711 443\r\n",
            "PROXY  TCP4 203.0.113.7 192.0.2.1 4711 443\r\n",
            "PROXY UNKNOWN \rx\n",
        ] {
            assert!(matches!(fails(line.as_bytes()), Malformed), "{line}");
        }
        for header in [
            binary(0x11, 0x11, &[0; 12]),
            binary(0x22, 0x11, &[0; 12]),
            binary(0x21, 0x11, &[0; 11]),
            binary(0x21, 0x21, &[0; 35]),
            binary(0x21, 0x41, &[0; 12]),
        ] {
            assert!(matches!(fails(&header), Malformed), "{header:?}");
        }
        let endless = [LINE_START, &[b'1'; LINE_BYTES]].concat();
        assert!(matches!(fails(&endless), TooLong(LINE_BYTES)));
        assert!(matches!(fails(&binary(0x20, 0, &[0; PROXY_HEADER_BYTES])), TooLong(PROXY_HEADER_BYTES)));
    }

    #[test]
    fn a_part_of_a_header_is_no_more_than_a_part() {
        for header in [LINE.to_vec(), ipv4(), ipv6(), b"PROXY UNKNOWN\r\n".to_vec()] {
            for bytes in 1..header.len() {
                let expected = Extent { bytes, is_whole: false };
                assert_eq!(extent(&header[..bytes]).expect("a beginning"), expected, "{header:?}");
            }
        }
    }

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("its address")).await;
        (client.expect("a connection"), listener.accept().await.expect("a connection").0)
    }

    /// Goal: however the bytes arrive, the reader takes the header and leaves the rest. Method: every cut of
    /// header and rest into two pieces, the second sent when the first has been taken.
    #[tokio::test]
    async fn a_header_is_taken_from_a_socket_and_what_follows_is_left() {
        const REST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
        for header in [LINE.to_vec(), ipv4()] {
            let sent = [&header[..], REST].concat();
            for cut in 1..sent.len() {
                let (mut client, mut server) = connected().await;
                client.set_nodelay(true).expect("a socket");
                let (first, second) = sent.split_at(cut);
                let send = async {
                    client.write_all(first).await.expect("sent");
                    tokio::task::yield_now().await;
                    client.write_all(second).await.expect("sent");
                };
                let (named, ()) = tokio::join!(read_proxy_header(&server), send);
                assert_eq!(
                    named.expect("a header"),
                    Some("203.0.113.7:4711".parse().unwrap()),
                    "cut at {cut}"
                );
                let mut rest = [0; REST.len()];
                server.read_exact(&mut rest).await.expect("the rest");
                assert_eq!(rest, REST, "cut at {cut}");
            }
        }
    }

    #[tokio::test]
    async fn an_end_before_the_header_is_no_fault_and_one_within_it_is() {
        for sent in [&b""[..], b"PROXY TCP4 "] {
            let (mut client, server) = connected().await;
            client.write_all(sent).await.expect("sent");
            drop(client);
            let error = read_proxy_header(&server).await.expect_err("an end");
            assert_eq!(matches!(error, ProxyHeaderError::Closed), sent.is_empty(), "{error}");
            assert_eq!(matches!(error, ProxyHeaderError::Cut), !sent.is_empty(), "{error}");
        }
    }

    proptest! {
        /// For any bytes: no panic, and no byte beyond those received belongs to the header.
        #[test]
        fn any_bytes_have_an_answer(start in 0..3usize, rest in proptest::collection::vec(any::<u8>(), 0..600)) {
            let received = [[LINE_START, BINARY_START, b""][start], &rest].concat();
            prop_assume!(!received.is_empty());
            if let Ok(Extent { bytes, is_whole }) = extent(&received) {
                prop_assert!(bytes <= received.len());
                if is_whole {
                    let _ = source(&received[..bytes]);
                }
            }
        }
    }
}
