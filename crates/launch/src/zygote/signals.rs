//! What a zygote and its children do at signals.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::error::{During, LaunchError};

/// Signals of a terminal, and of a keeper that is gone, are the keeper's business.
const IGNORED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGPIPE];
/// SOURCE: `_NSIG` of every Linux architecture that Rust supports but MIPS.
const LAST_SIGNAL: i32 = 64;

/// All signals at their default action, but for those that are the keeper's.
pub(super) fn settle() -> Result<(), LaunchError> {
    // SIGKILL and SIGSTOP are refused, and have their default action anyway.
    for signal in 1..=LAST_SIGNAL {
        set_default(signal);
    }
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    for signal in IGNORED {
        // SAFETY: no handler is installed.
        unsafe { sigaction(signal, &ignore) }.during("ignore signals that are the keeper's")?;
    }
    SigSet::empty().thread_set_mask().during("unblock signals")
}

/// Undoes what the zygote ignores for itself; everything else it has reset already.
pub(super) fn reset() {
    for signal in IGNORED {
        set_default(signal as i32);
    }
    let _ = SigSet::empty().thread_set_mask();
}

/// Gives a signal its default action.
fn set_default(signal: i32) {
    // The kernel's `struct sigaction`, all zero: default action, no flags, empty mask. The C
    // library's call refuses two of the real-time signals, which callers may have ignored.
    let action = [0_u64; 4];
    // SAFETY: the structure is valid for the call and installs no handler.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), std::ptr::null_mut::<u64>(), 8) };
}
