//! Client and server, each in a namespace and on its own processor.
//!
//! The namespaces are joined by a pair of interfaces without offloads. Each interface's receive work runs in
//! a kernel thread for that interface (threaded NAPI), that of the server on the first processor, everything
//! of the client on the second: so what the kernel spends on the server's behalf is that thread's time, and
//! exact.

use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use flashweir_testkit::Testbed;

/// The namespaces, and each other's interface in them: names by which their threads are found.
pub(crate) const CLIENT: &str = "asker";
pub(crate) const SERVER: &str = "refuser";

/// Lets packets wake a receiving thread at most this often, as network cards do whose interrupts are
/// moderated; zero: each wakes it, which is what a pair of interfaces does by itself.
fn moderate_wakes(testbed: &Testbed, every: Duration) {
    for (namespace, interface) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        let settings = format!("/sys/class/net/{interface}");
        let (every_ns, times) = (every.as_nanos(), u8::from(!every.is_zero()));
        let command = format!(
            "echo {every_ns} > {settings}/gro_flush_timeout && echo {times} > {settings}/napi_defer_hard_irqs"
        );
        in_namespace(testbed, namespace, &command);
    }
}

/// Processors that wait for work awake, as machines tuned for latency do (/dev/cpu_dma_latency), until this
/// is dropped.
///
/// Waking one that has halted is a call to the hypervisor on a virtual machine, and the waking processor pays
/// for it, for packets sent as well as received: tens of microseconds that say nothing about what is run
/// then.
pub(crate) struct Awake {
    _held: File,
}

impl Awake {
    /// `None` where the kernel has no such setting.
    pub(crate) fn keep() -> Option<Self> {
        let mut held = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
        held.write_all(&0i32.to_ne_bytes()).ok()?;
        Some(Self { _held: held })
    }
}

/// Receiving in a thread takes NAPI, and a pair of interfaces has it with a program, or with this.
pub(crate) fn join_received(testbed: &Testbed, joins: bool) {
    let state = if joins { "on" } else { "off" };
    for (namespace, interface) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        in_namespace(testbed, namespace, &format!("ethtool -K {interface} gro {state}"));
    }
}

/// The threads that receive for the server, one for each queue; the client's go to the other processor.
pub(crate) struct Receiving {
    threads: Vec<u32>,
}

impl Receiving {
    pub(crate) fn start(testbed: &Testbed, wake_every: Duration) -> Self {
        let threads = |namespace: &str, interface: &str, processor: usize| {
            in_namespace(testbed, namespace, &format!("echo 1 > /sys/class/net/{interface}/threaded"));
            let threads = threads_of(interface);
            assert!(!threads.is_empty(), "{interface} receives in no separate thread");
            threads.iter().for_each(|&thread| pin(thread, processor));
            threads
        };
        moderate_wakes(testbed, wake_every);
        threads(CLIENT, SERVER, 1);
        Self { threads: threads(SERVER, CLIENT, 0) }
    }

    pub(crate) fn spent_ns(&self) -> u64 {
        self.threads.iter().map(|&thread| spent_ns(thread)).sum()
    }
}

/// Kernel threads that receive for an interface of this name, in any namespace.
fn threads_of(interface: &str) -> Vec<u32> {
    let prefix = format!("napi/{interface}-");
    let mut threads: Vec<u32> = std::fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with(&prefix))
        })
        .collect();
    threads.sort_unstable();
    threads
}

/// Time a process's threads have had on a processor (their `schedstat`).
pub(crate) fn spent_ns(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("a living process").flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    texts
        .map(|text| text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("a number"))
        .sum()
}

/// Keeps a process, or with 0 this thread, on one processor.
pub(crate) fn pin(process: u32, processor: usize) {
    // SAFETY: a set is an array of bits, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is large enough for the processors of any machine this is run on.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is to a set that outlives the call, and its size is given.
    let status = unsafe { libc::sched_setaffinity(process.cast_signed(), size_of_val(&set), &raw const set) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// The number of an interface of this thread's namespace.
pub(crate) fn index_of(interface: &str) -> u32 {
    let name = CString::new(interface).expect("no zero in it");
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

fn in_namespace(testbed: &Testbed, namespace: &str, command: &str) {
    let arguments = ["netns", "exec", &testbed.full_name(namespace), "sh", "-c", command];
    let output = Command::new("ip").args(arguments).output().expect("ip runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}
