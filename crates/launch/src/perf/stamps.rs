use steelyard_perf::Record;

const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const MISC_COMM_EXEC: u16 = 1 << 13;

/// What the kernel said of one process so far [ns of `CLOCK_MONOTONIC`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The program began.
    pub(crate) start_ns: Option<u64>,
    /// The program ended, or its first thread did.
    pub(crate) end_ns: Option<u64>,
    /// The kernel has counted for the program since then: what lies between this and the start is
    /// the kernel's own work of loading it.
    pub(crate) exec_record_ns: Option<u64>,
    /// The kernel counted until then: what lies between the end and this is its work of taking the
    /// process down.
    pub(crate) exit_record_ns: Option<u64>,
    /// The kernel told the parent, which is nearly the last thing the process did.
    pub(super) told_ns: Option<u64>,
    /// Record of the end of the first thread.
    pub(super) first_thread_ns: Option<u64>,
    pub(crate) company: Company,
    /// `end_ns` is the end of the last thread.
    pub(crate) is_whole_end: bool,
}

/// What the first process began beside its first thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Company {
    /// Further threads, so the first one may have ended early.
    pub(crate) has_threads: bool,
    pub(crate) has_children: bool,
}

impl Stamps {
    /// Whether the first thread began another one, or a process.
    pub(crate) const fn has_others(&self) -> bool {
        self.company.has_threads || self.company.has_children
    }

    /// From the beginning of counting to the start of the program [ns]; 0 if that is not known.
    pub(crate) fn loading_ns(&self) -> u64 {
        between(self.exec_record_ns, self.start_ns)
    }

    /// From the end of the program to the end of counting [ns]; 0 if that is not known.
    pub(crate) fn taking_down_ns(&self) -> u64 {
        between(self.end_ns, self.exit_record_ns)
    }

    /// From the end of the program to the parent's signal [ns], if both are known. A signal from before the
    /// end was one that the program sent.
    pub(crate) fn burial_ns(&self) -> Option<u64> {
        self.end_ns.zip(self.told_ns).and_then(|(end, told)| told.checked_sub(end))
    }

    /// Takes one record that is no sample.
    pub(super) fn take_side_band(&mut self, record: &Record<'_>, pid: u32) {
        let is_ours = record.word(8) == pid;
        match record.kind {
            RECORD_COMM if is_ours && record.misc & MISC_COMM_EXEC != 0 => {
                let time_ns = record.trailing_time_ns();
                // CPUs have a ring each, so the first exec need not be read first.
                self.exec_record_ns =
                    Some(self.exec_record_ns.map_or(time_ns, |earlier| earlier.min(time_ns)));
            }
            // {pid, ppid, tid, ptid, time}
            RECORD_EXIT if is_ours => {
                let time_ns = record.trailing_time_ns();
                if record.word(16) == pid {
                    self.first_thread_ns = Some(time_ns);
                }
                self.exit_record_ns = self.exit_record_ns.max(Some(time_ns));
            }
            // {pid, ppid, tid, ptid, time}
            RECORD_FORK if record.word(12) == pid => {
                let company = &mut self.company;
                *(if is_ours { &mut company.has_threads } else { &mut company.has_children }) = true;
            }
            _ => {}
        }
    }
}

fn between(from: Option<u64>, to: Option<u64>) -> u64 {
    from.zip(to).map_or(0, |(from, to)| to.saturating_sub(from))
}
