//! A token bucket before an interface, and the books of the queue behind it.

use serde_json::Value;

use crate::TestbedError;
use crate::tools::run;

/// A token bucket filter with a drop-tail queue. Linux counts frames: 14 bytes more than the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Tokens that come in each second, bits.
    pub rate_bits_per_s: u64,
    /// Tokens kept while nothing is sent, bytes. Less than a frame lets nothing through; a single frame loses
    /// rate whenever a timer is late.
    pub burst_bytes: u32,
    /// Room for frames that wait for tokens, bytes.
    pub limit_bytes: u32,
}

/// Statistics of a queue since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBooks {
    /// Frames that left.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Frames refused for want of room.
    pub dropped: u64,
    /// Frames that wait now.
    pub waiting: u64,
}

impl TokenBucket {
    pub(crate) fn put(self, name: &str, interface: &str) -> Result<(), TestbedError> {
        let rate = format!("{}bit", self.rate_bits_per_s);
        let [burst, limit] = [self.burst_bytes, self.limit_bytes].map(|bytes| bytes.to_string());
        let tbf = ["tbf", "rate", &rate, "burst", &burst, "limit", &limit];
        let arguments =
            [&["-n", name, "qdisc", "replace", "dev", interface, "root"], tbf.as_slice()].concat();
        run("tc", &arguments).map(drop)
    }
}

impl QueueBooks {
    pub(crate) fn read(name: &str, interface: &str) -> Result<Self, TestbedError> {
        let text = run("tc", &["-n", name, "-s", "-j", "qdisc", "show", "dev", interface, "root"])?;
        let books: Value = serde_json::from_str(&text).unwrap_or_default();
        let count = |what: &'static str| {
            books[0][what].as_u64().ok_or_else(|| TestbedError::Answer { what, text: text.clone() })
        };
        Ok(Self {
            sent: count("packets")?,
            sent_bytes: count("bytes")?,
            dropped: count("drops")?,
            waiting: count("qlen")?,
        })
    }
}
