//! Memory that is free already, for the system to have.

/// Gives free pages of the heap back to the operating system, those in the middle of it included
/// (malloc_trim(3)); by itself the allocator gives back little more than its end. Takes the locks of the
/// heap's parts one after the other, so threads that allocate may wait some milliseconds: call it after a
/// flood, not on a schedule. Does nothing where the C library is another.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim takes its own locks, touches free memory only, and may be called from any thread at
    // any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
