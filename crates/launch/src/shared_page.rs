//! The page on which keeper, zygote and child meet.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::futex;

/// Longest message a failing child can leave [bytes].
const MESSAGE_BYTES: usize = 1024;

/// How far a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Progress {
    /// Nothing was cloned yet, or the child is being set up.
    SettingUp = 0,
    /// The child waits at its gate.
    Ready = 1,
    /// Set-up failed; step and message say where.
    Failed = 2,
    /// The gate was open and `execve` returned.
    ExecFailed = 3,
}

impl Progress {
    const fn from_raw(raw: u32) -> Self {
        match raw {
            1 => Self::Ready,
            2 => Self::Failed,
            3 => Self::ExecFailed,
            _ => Self::SettingUp,
        }
    }
}

/// What the child used until right before `execve`: subtracted from what it used in total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SetUpUsage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// CPU time when the gate had opened, and right before `execve`.
    pub(crate) cpu_at_gate_ns: u64,
    pub(crate) cpu_at_call_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) resident_bytes: u64,
    /// `schedstat` run delay before the gate; `u64::MAX` when the kernel does not tell.
    pub(crate) run_delay_at_gate_ns: u64,
    /// The same right before `execve`.
    pub(crate) run_delay_ns: u64,
}

const USAGE_WORDS: usize = 11;

/// Plain words in shared memory. Written by one side, read by the other after [`Progress`] moved.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Page {
    progress: AtomicU32,
    gate: AtomicU32,
    pid: AtomicI32,
    errno: AtomicI32,
    has_entered_slowly: AtomicU32,
    is_spared: AtomicU32,
    exec_ns: AtomicU64,
    /// The child's descriptor at which refused system calls are heard; 0 is none.
    listener: AtomicI32,
    usage: [AtomicU64; USAGE_WORDS],
    message_length: AtomicU32,
    message: [AtomicU8; MESSAGE_BYTES],
}

impl Page {
    /// Clears it for the next child.
    pub(crate) fn clear(&self) {
        // ORDERING: nobody else looks at the shared page between two children.
        self.gate.store(0, Ordering::Relaxed);
        self.pid.store(0, Ordering::Relaxed);
        self.errno.store(0, Ordering::Relaxed);
        self.exec_ns.store(0, Ordering::Relaxed);
        self.listener.store(0, Ordering::Relaxed);
        self.has_entered_slowly.store(0, Ordering::Relaxed);
        self.is_spared.store(0, Ordering::Relaxed);
        self.message_length.store(0, Ordering::Relaxed);
        // ORDERING: the words above are clear before the progress is.
        self.progress.store(Progress::SettingUp as u32, Ordering::Release);
    }

    pub(crate) fn progress(&self) -> Progress {
        // ORDERING: pairs with the store in `advance`: what was written before is visible now.
        Progress::from_raw(self.progress.load(Ordering::Acquire))
    }

    /// Where the kernel stores the child's id while it clones.
    pub(crate) fn pid_address(&self) -> *mut i32 {
        self.pid.as_ptr()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.load(Ordering::Acquire)
    }

    pub(crate) fn advance(&self, progress: Progress) {
        // ORDERING: pairs with the load in `progress`.
        self.progress.store(progress as u32, Ordering::Release);
        futex::wake_all(&self.progress);
    }

    /// Sleeps until the child got on, at most for `timeout`.
    pub(crate) fn wait_for_progress(&self, timeout: Duration) -> Progress {
        if self.progress() == Progress::SettingUp {
            futex::wait(&self.progress, Progress::SettingUp as u32, Some(timeout));
        }
        self.progress()
    }

    /// Child: it was moved into its group instead of being cloned there.
    pub(crate) fn note_slow_entry(&self) {
        self.has_entered_slowly.store(1, Ordering::Relaxed);
    }

    pub(crate) fn has_entered_slowly(&self) -> bool {
        // ORDERING: asked after `progress`, which orders everything before it.
        self.has_entered_slowly.load(Ordering::Relaxed) != 0
    }

    /// Zygote: the child begins as no victim of a lack of memory, as the zygote is none.
    pub(crate) fn note_spared(&self) {
        self.is_spared.store(1, Ordering::Relaxed);
    }

    pub(crate) fn is_spared(&self) -> bool {
        // ORDERING: asked after `progress`, which orders everything before it.
        self.is_spared.load(Ordering::Relaxed) != 0
    }

    /// Keeper: lets the child go.
    pub(crate) fn open_gate(&self) {
        // ORDERING: pairs with the load in `wait_at_gate`.
        self.gate.store(1, Ordering::Release);
        futex::wake_all(&self.gate);
    }

    /// Child: sleeps until the gate is open.
    pub(crate) fn wait_at_gate(&self) {
        // ORDERING: pairs with the store in `open_gate`.
        while self.gate.load(Ordering::Acquire) == 0 {
            futex::wait(&self.gate, 0, None);
        }
    }

    /// Child: offers its listener; [`advance`](Self::advance) comes after it.
    pub(crate) fn offer_listener(&self, descriptor: i32) {
        self.listener.store(descriptor, Ordering::Relaxed);
    }

    pub(crate) fn listener(&self) -> Option<i32> {
        Some(self.listener.load(Ordering::Relaxed)).filter(|descriptor| *descriptor > 0)
    }

    pub(crate) fn stamp_exec(&self, exec_ns: u64) {
        self.exec_ns.store(exec_ns, Ordering::Release);
    }

    /// The child's own stamp right before `execve`, once it made one.
    pub(crate) fn exec_ns(&self) -> Option<u64> {
        Some(self.exec_ns.load(Ordering::Acquire)).filter(|stamp| *stamp != 0)
    }

    /// From the child's call of `execve` to the exec that the kernel stamped.
    pub(crate) fn call_ns(&self, start_ns: Option<u64>) -> Option<u64> {
        start_ns?.checked_sub(self.exec_ns()?)
    }

    pub(crate) fn store_usage(&self, usage: &SetUpUsage) {
        let words = [
            usage.user_ns,
            usage.system_ns,
            usage.cpu_at_gate_ns,
            usage.cpu_at_call_ns,
            usage.minor_faults,
            usage.major_faults,
            usage.voluntary_switches,
            usage.involuntary_switches,
            usage.resident_bytes,
            usage.run_delay_at_gate_ns,
            usage.run_delay_ns,
        ];
        for (slot, word) in self.usage.iter().zip(words) {
            // ORDERING: `stamp_exec` comes after it; read once that stamp was seen.
            slot.store(word, Ordering::Relaxed);
        }
    }

    pub(crate) fn usage(&self) -> SetUpUsage {
        let mut words = [0; USAGE_WORDS];
        for (word, slot) in words.iter_mut().zip(&self.usage) {
            *word = slot.load(Ordering::Relaxed);
        }
        let [
            user_ns,
            system_ns,
            cpu_at_gate_ns,
            cpu_at_call_ns,
            minor_faults,
            major_faults,
            voluntary_switches,
            rest @ ..,
        ] = words;
        let [involuntary_switches, resident_bytes, run_delay_at_gate_ns, run_delay_ns] = rest;
        SetUpUsage {
            user_ns,
            system_ns,
            cpu_at_gate_ns,
            cpu_at_call_ns,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
            resident_bytes,
            run_delay_at_gate_ns,
            run_delay_ns,
        }
    }

    /// Leaves the reason of a failure; [`advance`](Self::advance) comes after it.
    pub(crate) fn report(&self, errno: i32, message: &str) {
        let length = message.len().min(MESSAGE_BYTES);
        for (slot, byte) in self.message.iter().zip(message.bytes()) {
            slot.store(byte, Ordering::Relaxed);
        }
        self.errno.store(errno, Ordering::Relaxed);
        self.message_length.store(u32::try_from(length).unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn failure(&self) -> (i32, String) {
        let length = self.message_length.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> =
            self.message.iter().take(length).map(|slot| slot.load(Ordering::Relaxed)).collect();
        (self.errno.load(Ordering::Relaxed), String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A page that processes forked from here on see too.
#[derive(Debug)]
pub(crate) struct SharedPage(NonNull<Page>);

// SAFETY: every field is atomic, and the mapping lives until the last owner drops it.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    pub(crate) fn new() -> io::Result<Self> {
        let address = futex::map_shared(size_of::<Page>(), None)?;
        NonNull::new(address.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl Deref for SharedPage {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: mapped by `new`, page-aligned, zeroed (valid for atomics), unmapped only on drop;
        // every field is atomic, so other processes may write at any time.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; no reference outlives the owner.
        unsafe { futex::unmap(self.0.as_ptr().cast(), size_of::<Page>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_as_it_was_written() {
        let page = SharedPage::new().unwrap();
        page.report(2, "not found");
        page.advance(Progress::ExecFailed);
        assert_eq!(page.progress(), Progress::ExecFailed);
        assert_eq!(page.failure(), (2, "not found".to_owned()));
        page.clear();
        assert_eq!(page.progress(), Progress::SettingUp);
        assert_eq!(page.exec_ns(), None);
    }

    #[test]
    fn usage_keeps_the_order_of_its_fields() {
        let page = SharedPage::new().unwrap();
        let usage = SetUpUsage { user_ns: 1, system_ns: 2, run_delay_ns: 9, ..SetUpUsage::default() };
        page.store_usage(&usage);
        assert_eq!(page.usage(), usage);
    }

    #[test]
    fn a_message_longer_than_the_page_is_cut() {
        let page = SharedPage::new().unwrap();
        page.report(1, &"x".repeat(5000));
        assert_eq!(page.failure().1.len(), MESSAGE_BYTES);
    }
}
