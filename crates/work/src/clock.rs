/// Length of a timed section by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// `CLOCK_PROCESS_CPUTIME_ID` [ns].
    pub cpu_ns: u64,
    /// `CLOCK_MONOTONIC` [ns].
    pub wall_ns: u64,
}

/// Reads both clocks; the wall interval encloses the CPU interval.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Times,
}

impl Stopwatch {
    /// Starts.
    #[must_use]
    pub fn start() -> Self {
        let wall_ns = read(libc::CLOCK_MONOTONIC);
        let cpu_ns = read(libc::CLOCK_PROCESS_CPUTIME_ID);
        Self { started: Times { cpu_ns, wall_ns } }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Times {
        let cpu_ns = read(libc::CLOCK_PROCESS_CPUTIME_ID);
        let wall_ns = read(libc::CLOCK_MONOTONIC);
        Times { cpu_ns: cpu_ns - self.started.cpu_ns, wall_ns: wall_ns - self.started.wall_ns }
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and both clocks used here exist on every Linux, so the
    // call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_takes_wall_time_and_no_cpu_time() {
        let watch = Stopwatch::start();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let times = watch.elapsed();
        assert!(times.wall_ns >= 20_000_000, "{times:?}");
    }

    #[test]
    fn a_loop_takes_cpu_time() {
        let watch = Stopwatch::start();
        let mut word = 1_u64;
        while watch.elapsed().cpu_ns < 2_000_000 {
            word = std::hint::black_box(word.rotate_left(1));
        }
        assert!(watch.elapsed().cpu_ns >= 2_000_000);
    }
}
