//! The launcher hears of refused calls.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, pipe, read, write};
use steelyard_launch::sandbox::{ChildView, Refusals};
use steelyard_model::{Limits, SandboxSpec};

use super::Case;
use crate::jail::Jail;

pub(super) const CASES: &[(&str, Case)] = &[
    ("refused_calls_are_heard", || heard(3, |refused, absent| refused == 3 && absent == 0)),
    ("a_flood_of_refused_calls_is_cut_off", || heard(200, |refused, absent| refused == 64 && absent == 136)),
];

/// The child makes `calls` refused calls and counts the answers `EPERM` and `ENOSYS`.
fn heard(calls: u8, expected: fn(u8, u8) -> bool) {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let ((number_in, number_out), (go_in, go_out)) = (pipe().unwrap(), pipe().unwrap());
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let limits = Limits::default();
            jail.pool.prepare_child(&ChildView { limits: &limits, working_directory: None }).unwrap();
            let listener = jail.pool.seal_child_watched().unwrap().expect("this kernel has listeners");
            write(&number_out, &listener.as_raw_fd().to_ne_bytes()).unwrap();
            read(&go_in, &mut [0]).unwrap();
            // Only the launcher listens, as after `execve`.
            drop(listener);
            let mut counts = [0_u8; 2];
            for _ in 0..calls {
                // SAFETY: no pointers.
                unsafe { libc::unshare(0) };
                let is_absent = std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS);
                counts[usize::from(is_absent)] += 1;
            }
            // SAFETY: the end.
            unsafe { libc::_exit(i32::from(!expected(counts[0], counts[1]))) }
        }
        ForkResult::Parent { child } => {
            let mut number = [0_u8; 4];
            read(&number_in, &mut number).unwrap();
            // SAFETY: no pointers; the kernel makes the descriptor for us.
            let pidfd = unsafe {
                let raw = libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0);
                OwnedFd::from_raw_fd(i32::try_from(raw).unwrap())
            };
            let mut refusals = Refusals::take(pidfd.as_fd(), i32::from_ne_bytes(number)).unwrap();
            write(&go_out, b"g").unwrap();
            while let Some(listener) = refusals.descriptor() {
                let mut watched = [PollFd::new(listener, PollFlags::POLLIN)];
                assert!(poll(&mut watched, PollTimeout::from(5000_u16)).unwrap() > 0, "nobody calls");
                refusals.answer();
            }
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            assert_eq!(refusals.calls().collect::<Vec<_>>(), [i32::try_from(libc::SYS_unshare).unwrap()]);
        }
    }
}
