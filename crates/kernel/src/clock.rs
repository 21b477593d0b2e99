//! The clock that programs in the kernel see, and the kernel's randomness.

/// Nanoseconds of CLOCK_MONOTONIC: what `bpf_ktime_get_ns` says.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a structure that outlives the call. This clock exists on every Linux, so it
    // cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // Neither is ever negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A key that cannot be guessed.
///
/// # Errors
/// When the kernel has no randomness to give, which it has from early in its start.
pub(crate) fn random_key() -> std::io::Result<[u64; 2]> {
    let mut key = [0u64; 2];
    let bytes = size_of_val(&key);
    // SAFETY: the pointer is to that many writable bytes; every pattern of bits is a value of them.
    let filled = unsafe { libc::getrandom(key.as_mut_ptr().cast(), bytes, 0) };
    // Requests of up to 256 bytes are filled whole (getrandom(2)).
    if filled == bytes as isize { Ok(key) } else { Err(std::io::Error::last_os_error()) }
}
