//! Lines for the journal of systemd: a priority in front (`sd-daemon(3)`), and no time, which the journal
//! has itself.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{self, Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The format of such a line.
pub(super) struct Journal(Format<Full, ()>);

impl Journal {
    /// The format, where standard error is the journal that `stream` names by device and inode
    /// (`JOURNAL_STREAM` of `systemd.exec(5)`).
    pub(super) fn for_stream(stream: &str) -> Option<Self> {
        let (device, inode) = stream.split_once(':')?;
        let numbers: (u64, u64) = (device.parse().ok()?, inode.parse().ok()?);
        let standard_error = std::fs::metadata("/proc/self/fd/2").ok()?;
        (numbers == (standard_error.dev(), standard_error.ino()))
            .then(|| Self(format::format().without_time().with_ansi(false)))
    }
}

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// Priority of syslog.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
