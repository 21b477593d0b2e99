//! Work that no signal interrupts.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `work` with all signals blocked in this thread; those that come meanwhile are delivered afterwards,
/// or to another thread.
///
/// The kernel gives the check of a program up with `EAGAIN` while a signal is pending for the thread, and
/// libbpf tries five times. A child that ends sends its signal to any thread that does not block it, so a
/// process that starts children can lose all five.
///
/// # Panics
/// When the system refuses the mask, which POSIX allows for a wrong constant only.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::all();
    work()
}

/// The mask to go back to; on drop, so that a panic goes back, too.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        let (mut all, mut former) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `sigfillset` writes the whole set that `pthread_sigmask` reads, and the latter writes the
        // former mask; both pointers are to sets of this frame.
        let former = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let error = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), former.as_mut_ptr());
            assert_eq!(error, 0, "SIG_SETMASK is known");
            former.assume_init()
        };
        Self(former)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask is one that `pthread_sigmask` wrote, and no former one is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
