//! The body of a response, taken in whole as far as that is wise.

use crate::upload::UploadBody;
use bytes::{Bytes, BytesMut};
use flashweir_core::Duration;
use flashweir_http::upstream::{UpstreamBody, UpstreamError};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use std::collections::VecDeque;
use std::pin::Pin;

/// A response that comes more slowly than this is passed on as it comes: its client, and those who wait with
/// it, would see nothing of it meanwhile.
const TAKES_AT_MOST: Duration = Duration::from_secs(2);

/// A response's body, as far as it was taken in.
pub(crate) enum Collected {
    /// All of it.
    Whole(Bytes),
    /// Its beginning: it is too large, too slow, or has trailers.
    Begun(Begun),
    /// It broke off.
    Failed(UpstreamError),
}

/// A body of which a part has been read.
pub(crate) struct Begun {
    pub(crate) first: VecDeque<Frame<Bytes>>,
    pub(crate) rest: Pin<Box<UpstreamBody<UploadBody>>>,
}

/// Collects a body of at most `bytes_max` bytes.
pub(crate) async fn collect(body: UpstreamBody<UploadBody>, bytes_max: usize) -> Collected {
    let mut begun = Begun { first: VecDeque::new(), rest: Box::pin(body) };
    let announced = begun.rest.size_hint().lower();
    if usize::try_from(announced).is_ok_and(|bytes| bytes > bytes_max) {
        return Collected::Begun(begun);
    }
    // What has come stays when the time is over.
    match tokio::time::timeout(TAKES_AT_MOST, begun.take_in(bytes_max)).await {
        Ok(Ok(true)) => Collected::Whole(begun.join()),
        Ok(Ok(false)) | Err(_) => Collected::Begun(begun),
        Ok(Err(error)) => Collected::Failed(error),
    }
}

impl Begun {
    /// Reads to the end; false where that is not to be waited for.
    async fn take_in(&mut self, bytes_max: usize) -> Result<bool, UpstreamError> {
        let mut bytes = 0;
        while let Some(frame) = self.rest.frame().await {
            let frame = frame?;
            let is_data = frame.is_data();
            bytes += frame.data_ref().map_or(0, Bytes::len);
            self.first.push_back(frame);
            if !is_data || bytes > bytes_max {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies the parts into one allocation: the parts lie in larger buffers.
    fn join(&self) -> Bytes {
        let parts = || self.first.iter().filter_map(Frame::data_ref);
        let mut whole = BytesMut::with_capacity(parts().map(Bytes::len).sum());
        parts().for_each(|part| whole.extend_from_slice(part));
        whole.freeze()
    }
}
