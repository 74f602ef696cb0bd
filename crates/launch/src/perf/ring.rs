use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use steelyard_perf::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_SAMPLE_ID_ALL, FLAG_TASK, FLAG_USE_CLOCKID, FLAG_WATERMARK,
    Record, RingPages, SAMPLE_TID_TIME, TYPE_SOFTWARE, open_as_allowed,
};

use super::stamps::Stamps;
use super::{DATA_PAGES, HALF_FULL_BYTES};

/// `PERF_COUNT_SW_DUMMY`: counts nothing, carries side-band records.
const DUMMY: u64 = 9;

/// Kernel records of exec and exit of one process, on `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(crate) struct ExecRing {
    event: File,
    pid: u32,
    seen: Mutex<(RingPages, Stamps)>,
}

impl ExecRing {
    /// Attaches to a process before its exec.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: DUMMY,
            sample_type: SAMPLE_TID_TIME,
            flags: FLAG_COMM
                | FLAG_COMM_EXEC
                | FLAG_TASK
                | FLAG_SAMPLE_ID_ALL
                | FLAG_USE_CLOCKID
                | FLAG_WATERMARK,
            // Half full: a program that forks a lot wakes the keeper rarely.
            wakeup: HALF_FULL_BYTES,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let (event, _) = open_as_allowed(&attributes, pid)?;
        let pages = RingPages::map(&event, DATA_PAGES)?;
        Ok(Self { event, pid: pid.cast_unsigned(), seen: Mutex::new((pages, Stamps::default())) })
    }

    /// Becomes readable when half of the ring is used.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Reads what has come since the last time. The stamps are the records'.
    pub(crate) fn drain(&self) -> Stamps {
        self.read(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same for a thread that must not wait: `None` while another one reads.
    pub(crate) fn try_drain(&self) -> Option<Stamps> {
        self.seen.try_lock().ok().map(|mut seen| self.read(&mut seen))
    }

    /// Reads for as long as the answer lives.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Drop + '_ {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, (pages, stamps): &mut (RingPages, Stamps)) -> Stamps {
        pages.drain(&mut |record: Record<'_>| stamps.take_side_band(&record, self.pid));
        stamps.start_ns = stamps.exec_record_ns;
        stamps.end_ns = stamps.first_thread_ns;
        *stamps
    }
}
