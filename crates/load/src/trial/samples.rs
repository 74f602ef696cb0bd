//! `samples.bin`: what service and jobs have used and waited so far.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use nix::unistd::Pid;

use crate::LoadError;
use crate::clock::now_ns;
use crate::record::{SampleRecord, create_file, file_error};

/// CPU time and waiting time of all threads that some processes have had [ns].
#[derive(Debug, Default)]
pub(super) struct Usage {
    threads: HashMap<i32, (u64, u64)>,
}

impl Usage {
    /// Looks at every thread; a thread that has ended keeps its last numbers.
    fn update(&mut self, processes: &[Pid]) -> (u64, u64) {
        for process in processes {
            let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let thread = name.to_str().and_then(|name| name.parse().ok());
                let times = fs::read_to_string(entry.path().join("schedstat")).ok();
                if let (Some(thread), Some(times)) = (thread, times.as_deref().and_then(parse_schedstat)) {
                    self.threads.insert(thread, times);
                }
            }
        }
        let sum = |(cpu, wait): (u64, u64), times: &(u64, u64)| (cpu + times.0, wait + times.1);
        self.threads.values().fold((0, 0), sum)
    }
}

/// CPU time and run delay [ns] (`Documentation/scheduler/sched-stats.rst`).
fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Busy time of some CPUs [ns]: user, nice, system, irq, softirq (`proc_stat(5)`).
fn parse_busy_ns(text: &str, cpus: &[usize], ticks_per_s: u64) -> u64 {
    let mut ticks = 0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let number =
            words.next().and_then(|name| name.strip_prefix("cpu")).and_then(|name| name.parse().ok());
        if !number.is_some_and(|number: usize| cpus.contains(&number)) {
            continue;
        }
        let times: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        ticks += [0, 1, 2, 5, 6].iter().filter_map(|index| times.get(*index)).sum::<u64>();
    }
    ticks * 1_000_000_000 / ticks_per_s
}

/// Writes samples.
#[derive(Debug)]
pub(super) struct Sampler {
    file: File,
    cpus: Vec<usize>,
    ticks_per_s: u64,
    service: Usage,
    best_effort: Usage,
}

impl Sampler {
    pub(super) fn create(path: &Path, cpus: &[usize]) -> Result<Self, LoadError> {
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
        Ok(Self {
            file: create_file(path, 0).map_err(|error| match error {
                LoadError::System { source, .. } => file_error(path, &source),
                other => other,
            })?,
            cpus: cpus.to_vec(),
            // SOURCE: proc_stat(5): USER_HZ is 100 on most architectures.
            ticks_per_s: ticks.and_then(|ticks| u64::try_from(ticks).ok()).unwrap_or(100),
            service: Usage::default(),
            best_effort: Usage::default(),
        })
    }

    /// Writes a sample; whatever is in the file is whole.
    pub(super) fn add(&mut self, service: &[Pid], jobs: &[Pid]) -> Result<(), LoadError> {
        let (service_cpu_ns, service_wait_ns) = self.service.update(service);
        let (best_effort_cpu_ns, best_effort_wait_ns) = self.best_effort.update(jobs);
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let sample = SampleRecord {
            time_ns: now_ns(),
            service_cpu_ns,
            service_wait_ns,
            best_effort_cpu_ns,
            best_effort_wait_ns,
            busy_ns: parse_busy_ns(&text, &self.cpus, self.ticks_per_s),
        };
        let written = self.file.write_all(&sample.bytes());
        written.map_err(|error| LoadError::system("writing `samples.bin`", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_that_of_the_named_cpus() {
        let text = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 4 100 100 8 16 32\ncpu1 1 0 0 0 0 0 0 0\ncpu10 50 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(parse_busy_ns(text, &[0], 100), 310_000_000);
        assert_eq!(parse_busy_ns(text, &[0, 1], 100), 320_000_000);
        assert_eq!(parse_busy_ns(text, &[2], 100), 0);
    }

    #[test]
    fn a_thread_that_has_ended_keeps_its_times() {
        let mut usage = Usage::default();
        let me = nix::unistd::getpid();
        usage.threads.insert(-1, (1 << 40, 1 << 41));
        let (cpu_ns, wait_ns) = usage.update(&[me, Pid::from_raw(i32::MAX)]);
        assert!(cpu_ns > 1 << 40 && wait_ns >= 1 << 41);
        assert_eq!(parse_schedstat("12 34 5\n"), Some((12, 34)));
        assert_eq!(parse_schedstat("12\n"), None);
    }
}
