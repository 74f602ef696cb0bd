//! The kernel's records of switches, of all CPUs.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use steelyard_perf::{
    Attributes, FLAG_COMM, FLAG_CONTEXT_SWITCH, FLAG_SAMPLE_ID_ALL, FLAG_TASK, FLAG_USE_CLOCKID,
    FLAG_WATERMARK, Record, RingPages, SAMPLE_TID_TIME, TYPE_SOFTWARE, open_on,
};

use crate::switches::{Event, Merge, What};
use crate::threads::{Name, to_name};

/// `PERF_COUNT_SW_DUMMY`: counts nothing, carries records beside the samples.
const DUMMY: u64 = 9;
/// SOURCE: own choice; 4 MiB hold 131 072 switches, enough for a second without a turn on a host that does
/// nothing but switch. What locked memory does not allow is tried with less.
const DATA_PAGES: [usize; 4] = [1024, 256, 64, 16];

/// SOURCE: `include/uapi/linux/perf_event.h`.
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SWITCH_CPU_WIDE: u32 = 15;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Events of all CPUs that are online.
#[derive(Debug)]
pub(crate) struct Cpus {
    rings: Vec<CpuRing>,
    /// Records that the kernel could not keep.
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    event: File,
    pages: RingPages,
}

impl Cpus {
    /// Watches every CPU.
    pub(crate) fn open() -> io::Result<Self> {
        let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
        let rings = parse_list(&online).into_iter().map(CpuRing::open).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { rings, lost: 0 })
    }

    /// Become readable when half of a ring is used.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.event.as_fd())
    }

    pub(crate) fn drain(&mut self, merge: &mut Merge) {
        for ring in &self.rings {
            let lost = &mut self.lost;
            let is_sound = ring.pages.drain(&mut |record| {
                if record.kind == RECORD_LOST {
                    *lost += record.long(16);
                } else if let Some(event) = read(&record, ring.cpu) {
                    merge.push(event);
                }
            });
            *lost += u64::from(!is_sound);
        }
    }
}

impl CpuRing {
    fn open(cpu: u32) -> io::Result<Self> {
        let number = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
        for data_pages in DATA_PAGES {
            let attributes = Attributes {
                kind: TYPE_SOFTWARE,
                config: DUMMY,
                sample_type: SAMPLE_TID_TIME,
                flags: FLAG_CONTEXT_SWITCH
                    | FLAG_COMM
                    | FLAG_TASK
                    | FLAG_SAMPLE_ID_ALL
                    | FLAG_USE_CLOCKID
                    | FLAG_WATERMARK,
                wakeup: u32::try_from(data_pages * 2048).unwrap_or(u32::MAX),
                clock: libc::CLOCK_MONOTONIC,
                ..Attributes::default()
            };
            let event = open_on(&attributes, number)?;
            match RingPages::map(&event, data_pages) {
                Ok(pages) => return Ok(Self { cpu, event, pages }),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// Reads one record; each ends in `{pid, tid, time}` of the thread that it is about.
fn read(record: &Record<'_>, cpu: u32) -> Option<Event> {
    let what = match record.kind {
        // {next_prev_pid, next_prev_tid, pid, tid, time}
        RECORD_SWITCH_CPU_WIDE if record.holds(32) => {
            let thread = record.word(20);
            if record.misc & MISC_SWITCH_OUT == 0 {
                What::In { thread }
            } else {
                What::Out {
                    thread,
                    next: record.word(12),
                    next_process: record.word(8).cast_signed(),
                    is_preempted: record.misc & MISC_SWITCH_OUT_PREEMPT != 0,
                }
            }
        }
        // {pid, tid, name, ...}
        RECORD_COMM if record.holds(32) => {
            let (first, second) = (record.long(16).to_ne_bytes(), record.long(24).to_ne_bytes());
            let mut text: Name = [0; 16];
            text[..8].copy_from_slice(&first);
            // A short name takes eight bytes; what follows it then is no text.
            if first[7] != 0 {
                text[8..].copy_from_slice(&second);
            }
            What::Named { thread: record.word(12), name: to_name(&text) }
        }
        // {pid, ppid, tid, ptid, time, ...}
        RECORD_FORK if record.holds(32) => What::Began { thread: record.word(16), parent: record.word(20) },
        RECORD_EXIT if record.holds(32) => What::Ended { thread: record.word(16) },
        _ => return None,
    };
    Some(Event { time_ns: record.trailing_time_ns(), cpu, what })
}

/// Reads a list of CPUs as the kernel writes it, `0-3,8`.
fn parse_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Why switches are not watched, and what would help.
pub(crate) fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "whole CPUs may not be watched here; allow it with CAP_PERFMON or `sysctl kernel.perf_event_paranoid=0`"
                .to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        _ => format!("perf events refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_list("7"), [7]);
        assert!(parse_list("").is_empty());
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        let said = refusal(&io::Error::from_raw_os_error(libc::EACCES));
        assert!(said.contains("CAP_PERFMON"), "{said}");
        assert!(refusal(&io::Error::from_raw_os_error(libc::ENOSYS)).contains("no perf events"));
    }
}
