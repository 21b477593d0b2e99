//! Last words to a client, said so that they arrive.

use crate::guarded::GuardHandle;
use flashweir_http1::connection::ReadPhase;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Room for the answer to a refused request to arrive: closing with unread bytes makes the kernel reset the
/// connection and the client lose the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;
const REQUEST_TIMEOUT_HEAD: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 48\r\n\r\n";
const REQUEST_TIMEOUT_TEXT: &[u8] = b"The head of the request did not arrive in time.\n";

/// Says 408 where that cannot fall into the middle of a response, then closes.
pub(super) async fn answer_request_timeout<Io>(mut io: Io, is_head: bool, guard: &GuardHandle)
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    if guard.phase() != ReadPhase::ReadingHead || guard.is_write_blocked() {
        return;
    }
    let text = if is_head { &[][..] } else { REQUEST_TIMEOUT_TEXT };
    let answer = [REQUEST_TIMEOUT_HEAD, text].concat();
    if let Ok(Ok(())) = timeout(LINGER, io.write_all(&answer)).await {
        let _ = timeout(LINGER, io.shutdown()).await;
        linger(io).await;
    }
}

/// Reads and forgets what the client still sends, for a bounded time and amount.
pub(super) async fn linger<Io: AsyncRead + Unpin>(mut io: Io) {
    let mut scratch = [0; 4_096];
    let mut left = LINGER_BYTES;
    let discard = async {
        while left > 0 {
            match io.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    };
    let _ = timeout(LINGER, discard).await;
}
