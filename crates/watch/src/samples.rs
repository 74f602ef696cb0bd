//! The state of the host, read from `/proc`.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// One sample; counters since boot. -1 where the kernel does not offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time_ns: i64,
    pub(crate) steal_ns: i64,
    pub(crate) interrupt_ns: i64,
    pub(crate) cpu_pressure_ns: i64,
    pub(crate) io_pressure_ns: i64,
    pub(crate) memory_pressure_ns: i64,
    pub(crate) running_threads: i64,
}

/// Files that are read again and again.
#[derive(Debug)]
pub(crate) struct Host {
    stat: Option<File>,
    load: Option<File>,
    pressure: [Option<File>; 3],
    tick_ns: i64,
}

impl Host {
    pub(crate) fn open() -> Self {
        // SAFETY: no pointers are passed.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Self {
            stat: File::open("/proc/stat").ok(),
            load: File::open("/proc/loadavg").ok(),
            pressure: ["cpu", "io", "memory"].map(|kind| File::open(format!("/proc/pressure/{kind}")).ok()),
            tick_ns: 1_000_000_000 / ticks_per_s.max(1),
        }
    }

    pub(crate) fn has_pressure(&self) -> bool {
        self.pressure.iter().all(Option::is_some)
    }

    pub(crate) fn read(&self, time_ns: u64) -> Sample {
        let mut text = [0_u8; 1024];
        let stat = start_of(self.stat.as_ref(), &mut text);
        let (steal, interrupt) = stat.and_then(parse_stat).unwrap_or((-1, -1));
        let in_ns = |ticks: i64| if ticks < 0 { -1 } else { ticks * self.tick_ns };
        let running_threads = start_of(self.load.as_ref(), &mut text).and_then(parse_load).unwrap_or(-1);
        let [cpu, io, memory] = [0, 1, 2].map(|index| {
            let mut text = [0_u8; 256];
            let found = start_of(self.pressure[index].as_ref(), &mut text).and_then(parse_pressure);
            found.map_or(-1, |total_us| total_us * 1000)
        });
        Sample {
            time_ns: i64::try_from(time_ns).unwrap_or(i64::MAX),
            steal_ns: in_ns(steal),
            interrupt_ns: in_ns(interrupt),
            cpu_pressure_ns: cpu,
            io_pressure_ns: io,
            memory_pressure_ns: memory,
            running_threads,
        }
    }
}

fn start_of<'a>(file: Option<&File>, text: &'a mut [u8]) -> Option<&'a str> {
    let length = file?.read_at(text, 0).ok()?;
    let end = text[..length].iter().rposition(|byte| *byte == b'\n').unwrap_or(length);
    std::str::from_utf8(&text[..end]).ok()
}

/// Steal, and interrupts of both kinds, of all CPUs together [ticks].
///
/// SOURCE: `proc_stat(5)`: `cpu user nice system idle iowait irq softirq steal ...`.
fn parse_stat(text: &str) -> Option<(i64, i64)> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.get(5)? + ticks.get(6)?))
}

/// Runnable threads. SOURCE: `proc_loadavg(5)`: the fourth field is `runnable/all`.
fn parse_load(text: &str) -> Option<i64> {
    text.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

/// Total of the line `some` [us]. SOURCE: Documentation/accounting/psi.rst.
fn parse_pressure(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_host_are_found() {
        let stat = "cpu  51 2 30 4000 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse_stat(stat), Some((8, 13)));
        assert_eq!(parse_stat("cpu0 1 2 3"), None);
        assert_eq!(parse_load("1.46 0.57 0.71 9/178 7563"), Some(9));
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 total=12";
        assert_eq!(parse_pressure(pressure), Some(4711));
        assert_eq!(parse_pressure("full total=12"), None);
    }

    #[test]
    fn this_host_answers() {
        let host = Host::open();
        let sample = host.read(17);
        assert_eq!(sample.time_ns, 17);
        assert!(sample.running_threads >= 1 && sample.interrupt_ns >= 0, "{sample:?}");
        assert_eq!(host.has_pressure(), sample.cpu_pressure_ns >= 0);
    }
}
