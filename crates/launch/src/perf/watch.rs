use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use steelyard_perf::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_SAMPLE_ID_ALL, FLAG_TASK, FLAG_USE_CLOCKID, FLAG_WATERMARK,
    Record, RingPages, SAMPLE_TID_TIME, TYPE_TRACEPOINT, open_on,
};

use super::stamps::Stamps;
use super::tracepoint::Tracepoints;
use super::{DATA_PAGES, HALF_FULL_BYTES};

const RECORD_SAMPLE: u32 = 9;
/// `PERF_SAMPLE_RAW`: what the event itself tells.
const SAMPLE_RAW: u64 = 1 << 10;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// `PERF_EVENT_IOC_SET_FILTER`.
const SET_FILTER: libc::c_ulong = 0x4008_2406;
/// `SIGCHLD`: other signals do not reach the ring.
const OF_CHILDREN: &CStr = c"sig == 17";
/// A sample is {pid, tid, time, size of the rest, rest}; offsets count from its header.
const SAMPLE_TIME: u64 = 16;
const SAMPLE_REST: u64 = 28;

/// Watches CPUs for the programs that begin and end on them.
///
/// The events stay open from run to run: attaching them to each process would cost a walk through
/// all of the kernel's events (0.03 to 0.07 ms), and the pages of a ring once more.
#[derive(Debug)]
pub(crate) struct ExecWatch {
    seen: Mutex<Seen>,
    ready: Epoll,
    tracepoints: Tracepoints,
}

/// What was read so far, and where the rest comes from.
#[derive(Debug, Default)]
struct Seen {
    rings: Vec<CpuRing>,
    pid: u32,
    stamps: Stamps,
}

#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    pages: RingPages,
    exit: File,
    _others: [File; 2],
}

impl ExecWatch {
    /// Watches no CPU yet.
    ///
    /// # Errors
    ///
    /// If the kernel gives no descriptor.
    pub(crate) fn new(tracepoints: Tracepoints) -> io::Result<Self> {
        Ok(Self { seen: Mutex::default(), ready: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, tracepoints })
    }

    /// Watches these CPUs and no others. Every launcher that watches a CPU costs each program that begins
    /// or ends there some 0.3 us, so one watches no CPU that its runs are kept from.
    ///
    /// # Errors
    ///
    /// What keeps the events from being opened: no right to watch a whole CPU.
    pub(crate) fn set_cpus(&self, cpus: &[u32]) -> io::Result<()> {
        let rings = &mut self.seen().rings;
        for cpu in cpus {
            if rings.iter().all(|ring| ring.cpu != *cpu) {
                let ring = CpuRing::open(self.tracepoints, *cpu)?;
                self.ready.add(&ring.exit, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
                rings.push(ring);
            }
        }
        // KERNEL: closing the last event of a tracepoint patches the kernel's code, so the old ones go last.
        rings.retain(|ring| cpus.contains(&ring.cpu));
        Ok(())
    }

    /// Turns to the next process, before its exec; what others did is forgotten.
    pub(crate) fn turn_to(&self, pid: i32) {
        let mut seen = self.seen();
        seen.drain(self.tracepoints);
        (seen.pid, seen.stamps) = (pid.cast_unsigned(), Stamps::default());
    }

    /// Becomes readable when half of a ring is used.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }

    /// Reads what has come since the last time.
    pub(crate) fn drain(&self) -> Stamps {
        self.seen().drain(self.tracepoints)
    }

    /// The same for a thread that must not wait: `None` while another one reads.
    pub(crate) fn try_drain(&self) -> Option<Stamps> {
        self.seen.try_lock().ok().map(|mut seen| seen.drain(self.tracepoints))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn drain(&mut self, tracepoints: Tracepoints) -> Stamps {
        let (pid, stamps) = (self.pid, &mut self.stamps);
        for ring in &self.rings {
            ring.pages.drain(&mut |record| {
                if record.kind == RECORD_SAMPLE {
                    take_sample(stamps, &record, tracepoints, pid);
                } else {
                    stamps.take_side_band(&record, pid);
                }
            });
        }
        *stamps
    }
}

impl CpuRing {
    fn open(tracepoints: Tracepoints, cpu: u32) -> io::Result<Self> {
        let attributes = |config: u16, further: u64| Attributes {
            kind: TYPE_TRACEPOINT,
            config: u64::from(config),
            sample_period: 1,
            sample_type: SAMPLE_TID_TIME | SAMPLE_RAW,
            flags: FLAG_SAMPLE_ID_ALL | FLAG_USE_CLOCKID | FLAG_WATERMARK | further,
            wakeup: HALF_FULL_BYTES,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let number = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        let exit = open_on(&attributes(tracepoints.exit, FLAG_COMM | FLAG_COMM_EXEC | FLAG_TASK), number)?;
        let exec = open_on(&attributes(tracepoints.exec, 0), number)?;
        let signal = open_on(&attributes(tracepoints.signal, 0), number)?;
        // SAFETY: the filter is a string, ended by a zero.
        succeeded(unsafe { libc::ioctl(signal.as_raw_fd(), SET_FILTER, OF_CHILDREN.as_ptr()) })?;
        let pages = RingPages::map(&exit, DATA_PAGES)?;
        let others = [exec, signal];
        for other in &others {
            // SAFETY: no pointers are passed.
            succeeded(unsafe { libc::ioctl(other.as_raw_fd(), SET_OUTPUT, exit.as_raw_fd()) })?;
        }
        Ok(Self { cpu, pages, exit, _others: others })
    }
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn take_sample(stamps: &mut Stamps, record: &Record<'_>, tracepoints: Tracepoints, pid: u32) {
    if record.word(8) != pid || !record.holds(SAMPLE_REST + 2) {
        return;
    }
    let (thread, time_ns) = (record.word(12), record.long(SAMPLE_TIME));
    let event = record.short(SAMPLE_REST);
    if event == tracepoints.exec {
        // CPUs have a ring each, so the first exec need not be read first.
        stamps.start_ns = Some(stamps.start_ns.map_or(time_ns, |earlier| earlier.min(time_ns)));
    } else if event == tracepoints.signal {
        // Its parent's, or one that it sent; the last one tells of its end.
        stamps.told_ns = stamps.told_ns.max(Some(time_ns));
    } else if event == tracepoints.exit {
        let is_last = tracepoints
            .group_dead_offset
            .filter(|offset| record.holds(SAMPLE_REST + offset + 1))
            .map(|offset| record.byte(SAMPLE_REST + offset) != 0);
        if is_last.unwrap_or(thread == pid) {
            stamps.end_ns = stamps.end_ns.max(Some(time_ns));
            stamps.is_whole_end = is_last.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::scheduling::allowed_cpus;

    #[test]
    fn the_end_of_a_process_and_the_word_of_it_are_stamped_in_this_order() {
        let watch = Tracepoints::find().and_then(ExecWatch::new).and_then(|watch| {
            watch.set_cpus(&allowed_cpus())?;
            Ok(watch)
        });
        let watch = match watch {
            Ok(watch) => watch,
            Err(error) => {
                eprintln!("skipped: tracepoints of whole CPUs: {error}");
                return;
            }
        };
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        watch.turn_to(child.id().cast_signed());
        assert_eq!(watch.drain().told_ns, None);
        drop(child.stdin.take());
        child.wait().unwrap();
        let stamps = watch.drain();
        let (end, told) = (stamps.end_ns.unwrap(), stamps.told_ns.unwrap());
        assert!(end < told, "{end} {told}");
        assert_eq!(stamps.burial_ns(), Some(told - end));
    }
}
