//! The kernel's accounts, as text and as numbers. A line that is not understood is left out; nothing here
//! fails on what a kernel may write.

/// Time in which work was stalled for a resource, since the machine or the group is there (PSI).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some of the tasks were stalled, microseconds.
    pub some_us: u64,
    /// All of them were, microseconds.
    pub full_us: u64,
}

/// Processor time of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCpu {
    /// Used, microseconds.
    pub usage_us: u64,
    /// Stopped by its quota, microseconds, added up over processors.
    pub throttled_us: u64,
}

/// The machine's processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCpu {
    /// Number of processors.
    pub processors: u32,
    /// Idle time of all, hundredths of a second; waiting for a disk is idle.
    pub idle_ticks: u64,
}

/// One thread's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread.
    pub id: u32,
    /// On a processor, nanoseconds.
    pub ran_ns: u64,
    /// Ready and waiting for one, nanoseconds.
    pub waited_ns: u64,
}

/// Sockets of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Connections that the service has not accepted yet.
    pub unaccepted: u64,
    /// Connections accepted and open.
    pub open: u64,
    /// Open connections with bytes that the service has not read.
    pub unread: u64,
}

impl Sockets {
    /// The sum of two tables.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            unaccepted: self.unaccepted + other.unaccepted,
            open: self.open + other.open,
            unread: self.unread + other.unread,
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, and a line `full`; none where there is no such line.
#[must_use]
pub fn pressure(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
        line.split(' ').find_map(|field| field.strip_prefix("total="))?.parse().ok()
    };
    // A machine's processor pressure has no line `full` before Linux 5.13.
    Some(Pressure { some_us: total("some")?, full_us: total("full").unwrap_or(0) })
}

/// A control group's `cpu.stat`; none without its usage.
#[must_use]
pub fn group_cpu(text: &str) -> Option<GroupCpu> {
    Some(GroupCpu {
        usage_us: keyed(text, "usage_usec")?,
        throttled_us: keyed(text, "throttled_usec").unwrap_or(0),
    })
}

/// A control group's `cpu.max`: processors it may use; none where there is no quota.
#[must_use]
pub fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    let processors = quota / period;
    (processors.is_finite() && processors > 0.0).then_some(processors)
}

/// A file with one number, as `memory.current`; none for `max`.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `/proc/stat`.
#[must_use]
pub fn machine_cpu(text: &str) -> Option<MachineCpu> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut ticks = all.split_ascii_whitespace().map_while(|field| field.parse::<u64>().ok());
    // user nice system idle iowait …
    let idle = ticks.nth(3)?.saturating_add(ticks.next().unwrap_or(0));
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let processors = text.lines().filter(is_processor).count();
    Some(MachineCpu { processors: u32::try_from(processors).ok()?.max(1), idle_ticks: idle })
}

/// `/proc/meminfo`: the machine's memory, and what of it can be had, bytes.
#[must_use]
pub fn machine_memory(text: &str) -> Option<(u64, u64)> {
    let bytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
    };
    Some((bytes("MemTotal")?, bytes("MemAvailable")?))
}

/// `/proc/loadavg`: tasks that run or are ready to, the reader left out.
#[must_use]
pub fn runnable(text: &str) -> Option<u64> {
    let (runnable, _) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
    runnable.parse::<u64>().ok().map(|runnable| runnable.saturating_sub(1))
}

/// `/proc/PID/task/TID/schedstat`.
#[must_use]
pub fn thread_time(id: u32, text: &str) -> Option<ThreadTime> {
    let mut fields = text.split_ascii_whitespace().map_while(|field| field.parse::<u64>().ok());
    Some(ThreadTime { id, ran_ns: fields.next()?, waited_ns: fields.next()? })
}

/// `/proc/PID/stat`: the parent's process id. The name in it may hold anything, brackets and spaces included.
#[must_use]
pub fn parent(text: &str) -> Option<u32> {
    let (_, after_name) = text.rsplit_once(") ")?;
    after_name.split(' ').nth(1)?.parse().ok()
}

/// `/proc/PID/statm`: resident memory, bytes, with pages of 4 KiB.
#[must_use]
pub fn resident_bytes(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(4_096)
}

/// `/proc/PID/cgroup`: the path of the group in the unified hierarchy.
#[must_use]
pub fn unified_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// `/proc/mounts`: where the unified hierarchy is.
#[must_use]
pub fn unified_mount(text: &str) -> Option<&str> {
    let mut mounts = text.lines().map(|line| line.split(' '));
    mounts.find_map(|mut fields| {
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(place)
    })
}

/// `/proc/net/tcp` or `tcp6`: what waits at a local port. For a socket that listens, the kernel writes the
/// connections that were not accepted yet as its receive queue.
#[must_use]
pub fn sockets(lines: impl IntoIterator<Item = impl AsRef<str>>, port: u16) -> Sockets {
    const ESTABLISHED: &str = "01";
    const LISTEN: &str = "0A";
    let mut sockets = Sockets::default();
    for line in lines.into_iter().skip(1) {
        let mut fields = line.as_ref().split_ascii_whitespace().skip(1);
        let (Some(local), Some(_remote), Some(state), Some(queues)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let local = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        let waiting = queues.split_once(':').and_then(|(_, queue)| u64::from_str_radix(queue, 16).ok());
        let (Some(local), Some(waiting)) = (local, waiting) else { continue };
        match state {
            LISTEN if local == port => sockets.unaccepted += waiting,
            ESTABLISHED if local == port => {
                sockets.open += 1;
                sockets.unread += u64::from(waiting > 0);
            }
            _ => {}
        }
    }
    sockets
}

/// The number behind a key in lines `key number`.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, proptest};

    #[test]
    fn the_files_of_a_kernel_are_read() {
        let text = "some avg10=2.02 avg60=4.07 avg300=5.70 total=14664323519\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(pressure(text), Some(Pressure { some_us: 14_664_323_519, full_us: 7 }));
        assert_eq!(
            pressure(text.lines().next().unwrap()),
            Some(Pressure { some_us: 14_664_323_519, full_us: 0 })
        );
        let text = "usage_usec 1200\nuser_usec 1000\nsystem_usec 200\nnr_periods 4\nnr_throttled 2\nthrottled_usec 50\n";
        assert_eq!(group_cpu(text), Some(GroupCpu { usage_us: 1_200, throttled_us: 50 }));
        assert_eq!((quota("150000 100000\n"), quota("max 100000\n"), quota("0 0")), (Some(1.5), None, None));
        assert_eq!((number("4096\n"), number("max\n")), (Some(4_096), None));
        let text = "cpu  10 0 20 300 40 0 5 0 0 0\ncpu0 5 0 10 150 20 0 5 0 0 0\ncpu1 5 0 10 150 20 0 0 0 0 0\nintr 9\n";
        assert_eq!(machine_cpu(text), Some(MachineCpu { processors: 2, idle_ticks: 340 }));
        let text = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     400 kB\n";
        assert_eq!(machine_memory(text), Some((1_024_000, 409_600)));
        assert_eq!(runnable("2.03 1.49 1.28 7/100 28888\n"), Some(6));
        assert_eq!(
            thread_time(3, "5268 28626567 2\n"),
            Some(ThreadTime { id: 3, ran_ns: 5_268, waited_ns: 28_626_567 })
        );
        assert_eq!(parent("42 (a) b (c) S 7 42 42 0 -1\n"), Some(7));
        assert_eq!(resident_bytes("900 100 50 1 0 200 0\n"), Some(409_600));
        assert_eq!(
            unified_group("3:cpuset:/\n0::/shop.slice/shop.service\n"),
            Some("/shop.slice/shop.service")
        );
        assert_eq!(
            unified_mount(
                "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
            ),
            Some("/sys/fs/cgroup/unified")
        );
    }

    #[test]
    fn sockets_of_a_port_are_counted() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
            \x20  0: 00000000:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000\n\
            \x20  1: 0100007F:1F90 0100007F:9C40 01 00000000:000000FF 00:00000000 00000000\n\
            \x20  2: 0100007F:1F90 0100007F:9C41 01 00000000:00000000 00:00000000 00000000\n\
            \x20  3: 0100007F:9C40 0100007F:1F90 01 00000000:00000009 00:00000000 00000000\n\
            \x20  4: 0100007F:1F9";
        assert_eq!(sockets(text.lines(), 8_080), Sockets { unaccepted: 3, open: 2, unread: 1 });
        assert_eq!(sockets(text.lines(), 80), Sockets::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// For any content of a file, nothing panics.
        #[test]
        fn any_text_is_read(text in "(some |full |total=|cpu ?|[0-9A-F:. ()/\n-]|usage_usec ){0,60}", port: u16) {
            let _read = (pressure(&text), group_cpu(&text), quota(&text), number(&text), machine_cpu(&text));
            let _read = (machine_memory(&text), runnable(&text), thread_time(1, &text), parent(&text));
            let _read = (resident_bytes(&text), unified_group(&text), unified_mount(&text), sockets(text.lines(), port));
        }
    }
}
