//! The kernel's state of a TCP connection: which bytes the other side has acknowledged, and how fast it
//! answers.
//!
//! `write` returning says only that bytes fit the socket's buffer. The peer's kernel acknowledging them is
//! the first honest sign that they crossed the network, and `TCP_INFO` is where Linux shows it. The structure
//! has grown over the years and the kernel fills as much as it knows: a field the running kernel lacks is
//! `None`, never zero.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// One look at a connection. Reading it costs one system call, about a microsecond (it takes the socket's
/// lock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The connection is over: reset, or closed by both sides. Nothing more will be acknowledged.
    pub closed: bool,
    /// Bytes the peer's kernel acknowledged since the connection began; `None` before Linux 4.1.
    pub bytes_acked: Option<u64>,
    /// Bytes handed to the network, retransmissions included; `None` before Linux 4.19.
    pub bytes_sent: Option<u64>,
    /// Bytes written by the program and not yet sent; `None` before Linux 4.6.
    pub not_sent_bytes: Option<u32>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time of the last minutes; `None` before Linux 4.6 or when never measured.
    pub min_rtt: Option<Duration>,
    /// Largest payload of one segment towards the peer, bytes.
    pub sending_mss_bytes: u32,
    /// The last delivery-rate measurement was limited by us having nothing to send, not by the network.
    pub delivery_rate_app_limited: bool,
    /// Segments sent again since the connection began.
    pub retransmitted_segments: u32,
    /// Time since the last acknowledgement arrived. The kernel counts it in its ticks: 1 to 10 ms of grain.
    pub since_last_ack: Duration,
}

/// Asks the kernel about a TCP socket.
///
/// # Errors
/// Errors of `getsockopt`: not a TCP socket, or not a socket at all.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut raw = KernelTcpInfo::default();
    let mut filled = size_of::<KernelTcpInfo>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the pointer is to a `repr(C)`
    // structure of plain integers that outlives the call, and `filled` holds its size, so the kernel writes
    // nothing beyond it.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut filled,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(raw.read(filled as usize))
}

/// The kernel's structure (linux/tcp.h, `struct tcp_info`) as far as it is used here.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelTcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    delivery_flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
}

/// `TCP_CLOSE` of the kernel's state numbers (net/tcp_states.h).
const STATE_CLOSE: u8 = 7;
/// Value of `min_rtt` before the first measurement: all ones.
const NEVER_MEASURED: u32 = u32::MAX;

impl KernelTcpInfo {
    /// The fields the kernel really wrote: those whose last byte lies within `filled`.
    fn read(&self, filled: usize) -> TcpInfo {
        let u64_at = |offset: usize, value: u64| (offset + size_of::<u64>() <= filled).then_some(value);
        let u32_at = |offset: usize, value: u32| (offset + size_of::<u32>() <= filled).then_some(value);
        TcpInfo {
            closed: self.state == STATE_CLOSE,
            bytes_acked: u64_at(offset_of!(Self, bytes_acked), self.bytes_acked),
            bytes_sent: u64_at(offset_of!(Self, bytes_sent), self.bytes_sent),
            not_sent_bytes: u32_at(offset_of!(Self, notsent_bytes), self.notsent_bytes),
            rtt: Duration::from_micros(self.rtt.into()),
            min_rtt: u32_at(offset_of!(Self, min_rtt), self.min_rtt)
                .filter(|&rtt_us| rtt_us != NEVER_MEASURED && rtt_us != 0)
                .map(|rtt_us| Duration::from_micros(rtt_us.into())),
            sending_mss_bytes: self.snd_mss,
            delivery_rate_app_limited: self.delivery_flags & 1 == 1,
            retransmitted_segments: self.total_retrans,
            since_last_ack: Duration::from_millis(self.last_ack_recv.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    /// A connected pair on loopback: (accepted, connecting).
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        (server, client)
    }

    #[test]
    fn acknowledged_bytes_follow_what_the_peer_received() {
        let (mut server, mut client) = pair();
        let before =
            tcp_info(&server).expect("info").bytes_acked.expect("this kernel counts acknowledged bytes");
        server.write_all(&[7; 10_000]).expect("write");
        let mut read = [0; 10_000];
        client.read_exact(&mut read).expect("read");
        // The answer carries the acknowledgement of everything read so far.
        client.write_all(b"thanks").expect("answer");
        server.read_exact(&mut [0; 6]).expect("read answer");
        let after = tcp_info(&server).expect("info");
        assert_eq!(after.bytes_acked.expect("acked") - before, 10_000);
        assert!(after.bytes_sent.expect("sent") >= 10_000);
        assert!(after.sending_mss_bytes > 500, "{after:?}");
        assert!(after.rtt < Duration::from_secs(1), "{after:?}");
        assert!(after.min_rtt.expect("measured by now") <= after.rtt.max(Duration::from_millis(100)));
        assert!(!after.closed);
    }

    #[test]
    fn what_the_peer_does_not_read_stays_unacknowledged() {
        let (server, _client) = pair();
        server.set_nonblocking(true).expect("non-blocking");
        let (mut written, block) = (0u64, [0u8; 65_536]);
        while let Ok(count) = (&server).write(&block) {
            written += count as u64;
        }
        let info = tcp_info(&server).expect("info");
        assert!(info.bytes_acked.expect("acked") < written, "{written} written, {info:?}");
        assert!(info.not_sent_bytes.expect("not sent") > 0, "{info:?}");
    }

    #[test]
    fn a_reset_connection_is_closed() {
        let (server, client) = pair();
        // Unread data at close makes the kernel send a reset.
        (&server).write_all(b"never read").expect("write");
        let mut peeked = [0; 10];
        while client.peek(&mut peeked).expect("peek") < 10 {}
        drop(client);
        let mut rest = [0; 1];
        // Returns at once with end or error when the reset arrives.
        let _ = (&server).read(&mut rest);
        assert!(tcp_info(&server).expect("info").closed);
    }

    #[test]
    fn a_shorter_structure_of_an_older_kernel_leaves_later_fields_unknown() {
        let raw =
            KernelTcpInfo { bytes_acked: 5, bytes_sent: 6, min_rtt: 9, snd_mss: 1448, ..Default::default() };
        let old = raw.read(offset_of!(KernelTcpInfo, pacing_rate));
        assert_eq!((old.bytes_acked, old.bytes_sent, old.min_rtt), (None, None, None));
        assert_eq!(old.sending_mss_bytes, 1448);
        let half_way = raw.read(offset_of!(KernelTcpInfo, bytes_acked) + 7);
        assert_eq!(half_way.bytes_acked, None);
        let newer = raw.read(offset_of!(KernelTcpInfo, delivery_rate));
        assert_eq!((newer.bytes_acked, newer.bytes_sent), (Some(5), None));
        assert_eq!(newer.min_rtt, Some(Duration::from_micros(9)));
    }

    #[test]
    fn an_unmeasured_round_trip_is_unknown() {
        let raw = KernelTcpInfo { min_rtt: u32::MAX, ..Default::default() };
        assert_eq!(raw.read(size_of::<KernelTcpInfo>()).min_rtt, None);
    }

    #[test]
    fn the_layout_is_the_kernels() {
        // Offsets of linux/tcp.h; a wrong one would read a neighbour's value without any error.
        assert_eq!(offset_of!(KernelTcpInfo, snd_mss), 16);
        assert_eq!(offset_of!(KernelTcpInfo, total_retrans), 100);
        assert_eq!(offset_of!(KernelTcpInfo, bytes_acked), 120);
        assert_eq!(offset_of!(KernelTcpInfo, min_rtt), 148);
        assert_eq!(offset_of!(KernelTcpInfo, bytes_sent), 200);
    }

    #[test]
    fn a_socket_that_is_not_tcp_is_an_error() {
        let (one, _other) = UnixStream::pair().expect("pair");
        assert!(tcp_info(&one).is_err());
    }
}
