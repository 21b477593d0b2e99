//! Upgraded connections (WebSocket): bytes both ways until either side ends or both fall silent.

use crate::upstream::UpstreamStream;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// Cause of a tunnel's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelEnd {
    /// The connection ended before both sides had switched protocols.
    NeverOpened,
    /// The client ended it.
    ClientClosed,
    /// The upstream ended it.
    UpstreamClosed,
    /// No byte either way for the idle timeout.
    Idle,
    /// A read or write failed.
    Failed,
    /// It was dropped while open (the gateway stopped).
    Dropped,
}

/// Traffic of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelReport {
    /// Bytes from the client to the upstream.
    pub upstream_bytes: u64,
    /// Bytes from the upstream to the client.
    pub client_bytes: u64,
    /// Cause of its end.
    pub end: TunnelEnd,
}

/// A switch of protocols that the upstream has agreed to, waiting for the client's connection to be
/// handed over.
///
/// Reports exactly once, also when it is dropped unopened.
pub struct PendingTunnel {
    upstream: UpstreamStream,
    idle_timeout: Duration,
    report: Reporter,
}

struct Reporter {
    report: TunnelReport,
    on_end: Option<Box<dyn FnOnce(TunnelReport)>>,
}

/// Time limit for delivering the bytes that have been read from one side when the other ends.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_secs(1);
const BUFFER_BYTES: usize = 8_192;

impl PendingTunnel {
    /// Prepares a tunnel to the stream that the upstream's 101 response has left.
    pub fn new(
        upstream: UpstreamStream,
        idle_timeout: Duration,
        on_end: impl FnOnce(TunnelReport) + 'static,
    ) -> Self {
        let report = TunnelReport { upstream_bytes: 0, client_bytes: 0, end: TunnelEnd::NeverOpened };
        let report = Reporter { report, on_end: Some(Box::new(on_end)) };
        Self { upstream, idle_timeout, report }
    }

    /// Carries bytes until the end. `read_ahead` is what the client sent right behind its request.
    pub(crate) async fn run<Io>(mut self, client: Io, read_ahead: &[u8]) -> TunnelReport
    where
        Io: AsyncRead + AsyncWrite + Unpin,
    {
        self.report.report.end = TunnelEnd::Dropped;
        let UpstreamStream { io, received, .. } = &mut self.upstream;
        carry(client, (io, received), read_ahead, self.idle_timeout, &mut self.report.report).await;
        self.report.report
    }
}

impl fmt::Debug for PendingTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingTunnel").field("report", &self.report.report).finish_non_exhaustive()
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.report);
        }
    }
}

/// Carries bytes both ways, counting into `report` as it goes: a drop half-way still reports the truth.
async fn carry<C, U>(
    client: C,
    (upstream, received): (U, &[u8]),
    read_ahead: &[u8],
    idle_timeout: Duration,
    report: &mut TunnelReport,
) where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (upstream_read, mut upstream_write) = tokio::io::split(upstream);
    let mut upstream_read = received.chain(upstream_read);
    let active_at = Cell::new(Instant::now());
    let (to_upstream, to_client) =
        (Cell::from_mut(&mut report.upstream_bytes), Cell::from_mut(&mut report.client_bytes));
    let outward = async {
        upstream_write.write_all(read_ahead).await?;
        to_upstream.set(read_ahead.len() as u64);
        copy(&mut client_read, &mut upstream_write, to_upstream, &active_at).await
    };
    let inward = copy(&mut upstream_read, &mut client_write, to_client, &active_at);
    let end = {
        let (mut outward, mut inward) = (std::pin::pin!(outward), std::pin::pin!(inward));
        tokio::select! {
            ended = &mut outward => {
                // The upstream's last words (a close frame) may be under way.
                let _ = timeout(LAST_BYTES_TIMEOUT, &mut inward).await;
                ended.map_or(TunnelEnd::Failed, |()| TunnelEnd::ClientClosed)
            }
            ended = &mut inward => ended.map_or(TunnelEnd::Failed, |()| TunnelEnd::UpstreamClosed),
            () = fall_silent(&active_at, idle_timeout) => TunnelEnd::Idle,
        }
    };
    if matches!(end, TunnelEnd::ClientClosed | TunnelEnd::Idle) {
        // A stream would otherwise end with a reset, and what is on its way to the client with it.
        let _ = timeout(LAST_BYTES_TIMEOUT, client_write.shutdown()).await;
    }
    report.end = end;
}

/// Copies until the reader ends, then ends the writer.
async fn copy<R, W>(
    reader: &mut R,
    writer: &mut W,
    count: &Cell<u64>,
    active_at: &Cell<Instant>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = reader.read(&mut buffer).await?;
        active_at.set(Instant::now());
        if read == 0 {
            return writer.shutdown().await;
        }
        writer.write_all(&buffer[..read]).await?;
        writer.flush().await?;
        count.set(count.get() + read as u64);
        active_at.set(Instant::now());
    }
}

/// Resolves once nothing has moved for `idle_timeout`; sleeps once per timeout, not once per byte.
async fn fall_silent(active_at: &Cell<Instant>, idle_timeout: Duration) {
    loop {
        let deadline = active_at.get() + idle_timeout;
        if deadline <= Instant::now() {
            return;
        }
        sleep_until(deadline).await;
    }
}
