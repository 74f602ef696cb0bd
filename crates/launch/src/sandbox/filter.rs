//! The system call filter.
//!
//! It allows by default and refuses what reaches the host's kernel beyond a program's own
//! business, so that C, Python and Java run as they are. Since the default is a constant, the
//! kernel (5.11 and later) answers allowed calls from a bitmap without executing the filter. The
//! bitmap is made when the filter is loaded, by walking through it once for each call there is:
//! hence a search tree over the numbers. Each instruction costs time at every load, for the kernel
//! compiles them anew: the program has no more than it needs.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libc::c_long;

use super::bpf::{Instruction, RETURN};
use super::error::SandboxError;
use super::forbidden::{forbidden_calls, forbidden_uses};
use super::tree::{self, Answer};

/// A compiled filter, ready to load.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<Instruction>,
    /// The same, but a refused call waits for whoever listens.
    watched: Vec<Instruction>,
}

impl Filter {
    /// Compiles the filter for this machine.
    pub(super) fn compile() -> Result<Self, SandboxError> {
        let (calls, rules): (Vec<_>, Vec<_>) = forbidden_uses().into_iter().unzip();
        let program = tree::decide(&answers(&calls), &rules)?;
        let watched = program.iter().copied().map(watch).collect();
        Ok(Self { program, watched })
    }

    /// Loads the filter into the calling thread; needs `no_new_privs`.
    pub(super) fn load(&self) -> io::Result<()> {
        // Without this flag kernels before 5.16 slow the program by speculation barriers.
        match load_with(&self.program, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => load_with(&self.program, 0).map(drop),
            other => other.map(drop),
        }
    }

    /// The same, and returns the descriptor at which refused calls are heard.
    pub(super) fn load_watched(&self) -> io::Result<OwnedFd> {
        let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let fd = load_with(&self.watched, flags)?;
        // SAFETY: the kernel has just made this descriptor for us; it is close-on-exec.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Lets the answer "not permitted" be given by a listener.
fn watch(mut step: Instruction) -> Instruction {
    const NOT_PERMITTED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    if step.code == RETURN && step.k == NOT_PERMITTED {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    step
}

fn load_with(program: &[Instruction], flags: libc::c_ulong) -> io::Result<RawFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points to as many instructions as it says; the kernel copies them.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        RawFd::try_from(answer).map_err(io::Error::other)
    }
}

/// What is decided by the number of the call alone. `clone3` does not exist, so that the C library
/// falls back to `clone`, whose flags a filter can see.
fn answers(inspected: &[c_long]) -> BTreeMap<u32, Answer> {
    let number = |call: c_long| u32::try_from(call).unwrap_or(u32::MAX);
    let mut answers: BTreeMap<u32, Answer> =
        forbidden_calls().map(|call| (number(call), Answer::Refuse(libc::EPERM))).collect();
    answers.extend(inspected.iter().enumerate().map(|(index, call)| (number(*call), Answer::Inspect(index))));
    answers.insert(number(libc::SYS_clone3), Answer::Refuse(libc::ENOSYS));
    answers
}

/// Whether this kernel filters system calls at all.
pub(super) fn is_supported() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one word behind the pointer.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_and_stays_compact() {
        let filter = Filter::compile().unwrap();
        assert!(filter.program.len() > 50);
        assert!(filter.program.len() < 128, "{} instructions", filter.program.len());
    }
}
