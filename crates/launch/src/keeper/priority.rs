//! How the keeper shares a CPU with what it measures.

use crate::scheduling::set_policy;

/// The keeper's thread under `SCHED_BATCH`, and what it was before.
///
/// A thread under the usual policy that wakes up takes the CPU from the one that is on it. The kernel
/// wakes the keeper while a program is still taken down, often on the same CPU: there it would be put
/// between the program's end and its burial. Under `SCHED_BATCH` it has the same share and does not push
/// in.
#[derive(Debug)]
pub(super) struct KeeperPriority {
    has_changed: bool,
}

impl KeeperPriority {
    /// A keeper that somebody gave another policy than the usual one keeps it.
    pub(super) fn adopt() -> Self {
        // SAFETY: asks only.
        let is_usual = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Self { has_changed: is_usual && set_policy(libc::SCHED_BATCH, 0).is_ok() }
    }
}

impl Drop for KeeperPriority {
    fn drop(&mut self) {
        if self.has_changed {
            // What was allowed one way is allowed back.
            let _ = set_policy(libc::SCHED_OTHER, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: asks only.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn the_policy_is_changed_and_given_back() {
        let before = policy();
        let priority = KeeperPriority::adopt();
        assert_eq!(policy(), if before == libc::SCHED_OTHER { libc::SCHED_BATCH } else { before });
        drop(priority);
        assert_eq!(policy(), before);
    }
}
